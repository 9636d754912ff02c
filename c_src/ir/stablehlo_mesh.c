/* Meshes, shardings and collectives in StableHLO. Axes of the mesh are named a0, a1, ... */
#include "ir/stablehlo_internal.h"

void hlo_print_mesh(hlo *h) {
  const ts_mesh *mesh = &h->graph->mesh;
  if (mesh->rank == 0) return;
  ts_text_append(h->out, "  sdy.mesh @mesh = <[");
  for (int32_t i = 0; i < mesh->rank; i++) ts_text_format(h->out, "%s\"a%d\"=%d", i ? ", " : "", i, mesh->sizes[i]);
  ts_text_append(h->out, "]>\n");
}

static void print_dims(hlo *h, const ts_sharding *sharding, int32_t rank) {
  ts_text_append(h->out, "#sdy.sharding<@mesh, [");
  for (int32_t d = 0; d < rank; d++) {
    const char *before = "";
    ts_text_append(h->out, d ? ", {" : "{");
    for (int32_t i = 0; i < sharding->count; i++) {
      if (sharding->cuts[i].dim != d) continue;
      ts_text_format(h->out, "%s\"a%d\"", before, sharding->cuts[i].axis);
      before = ", ";
    }
    ts_text_append(h->out, "}");
  }
  ts_text_append(h->out, "]>");
}

void hlo_print_sharding(hlo *h, ts_root_side side, size_t index, int32_t rank) {
  const ts_sharding *sharding = ts_graph_sharding(h->graph, side, index);
  if (!sharding || h->graph->mesh.rank == 0) return;
  ts_text_append(h->out, " {sdy.sharding = ");
  print_dims(h, sharding, rank);
  ts_text_append(h->out, "}");
}

ts_status hlo_collective(hlo *h, const ts_op *op) {
  hlo_value operand = hlo_get(h, op->operands[0]);
  ts_sharding sharding;
  if (op->code != TS_OP_SHARDING_CONSTRAINT) return hlo_no_form(&(hlo_call){.h = h, .op = op});
  TS_TRY(ts_sharding_make(&h->graph->mesh, &op->attrs->sharding.axes, &op->attrs->sharding.dims, &operand.shape,
                          &sharding));
  h->names[op->first_result] = hlo_begin(h, "sdy.sharding_constraint", 1, &operand, 1);
  ts_text_append(h->out, " <{sharding = ");
  print_dims(h, &sharding, operand.shape.rank);
  ts_text_append(h->out, "}>");
  hlo_end(h, &operand, 1, &operand, 1);
  return TS_SUCCESS;
}
