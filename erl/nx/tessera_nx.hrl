%% Terms of Elixir and Nx, as they look from Erlang.
-define(TENSOR, 'Elixir.Nx.Tensor').
-define(EXPR, 'Elixir.Nx.Defn.Expr').
-define(BINARY, 'Elixir.Nx.BinaryBackend').
-define(COMPILER, 'Elixir.Tessera').
-define(CLUSTER, 'Elixir.Tessera.Cluster').
-define(BACKEND, 'Elixir.Tessera.Backend').
-define(BUFFER, 'Elixir.Tessera.DeviceBuffer').
-define(TYPESPEC, 'Elixir.Tessera.Typespec').
-define(LOCK, 'Elixir.Tessera.Defn.Lock').    % a name that EXLA's users find the process by
-define(CLIENT, 'Elixir.Tessera.Client').
-define(POINTER, 'Elixir.Nx.Pointer').

%% A node of an expression: id, operation, arguments.
-define(NODE(Id, Op, Args), #{data := #{'__struct__' := ?EXPR, id := Id, op := Op, args := Args}}).
