%% Numbers outside of tensors: Erlang's, the floats that Erlang lacks as atoms, and {complex, Re, Im} with two real
%% numbers.
-define(IS_REAL_NUMBER(N), (is_number(N) orelse N =:= nan orelse N =:= infinity orelse N =:= neg_infinity)).
-define(IS_COMPLEX_NUMBER(N),
        (is_tuple(N) andalso tuple_size(N) =:= 3 andalso element(1, N) =:= complex andalso
         ?IS_REAL_NUMBER(element(2, N)) andalso ?IS_REAL_NUMBER(element(3, N)))).
