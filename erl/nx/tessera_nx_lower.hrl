%% What lowering passes along. A value is one of the core, or an input that the program does not have yet.
-record(st, {program       :: tessera_nif:builder() | undefined,
             memo = #{}    :: #{term() => term()},    % node id => value, or values of a tuple
             params = #{}  :: #{non_neg_integer() => term()},
             here = #{}    :: tessera_nx_expr:ids(),
             in_function = false :: boolean(),        % of a reduction: there nothing can call back
             effects = #{} :: tessera_nx_expr:ids(),
             handled = []  :: [atom()],
             client        :: atom(),                 % the name of the one for which blocks are lowered; undefined: the default
             is_cached = true :: boolean(),           % whether programs may be known already
             holds = true  :: boolean(),              % tensors in functions are arguments, not literals
             factors = true :: boolean(),             % whether Nx's loops that factor a matrix become ops
             calls = []    :: [term()],               % callbacks, last first; an index counts from the first one
             held = #{}    :: #{tessera_nx_ops:form() => [{binary() | none, term()}]},
             inputs = []   :: [term()],               % names of inputs that the program has, last first
             imports = #{} :: #{term() => term()}}).  % the same, name => value
%% An argument or a tensor that the function holds.
-record(input, {name :: term(), form :: tessera_nx_ops:form()}).
