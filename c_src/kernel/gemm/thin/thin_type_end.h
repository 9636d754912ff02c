/* Ends the part of thin_body.h for one type. */
#undef V
#undef LANES
#undef PIECE
#undef T
#undef FMA
#undef SPREAD
#undef WIDEN
#undef TURN
#undef LOW
#undef HIGH
#undef NAME
