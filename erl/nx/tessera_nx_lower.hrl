%% What lowering passes along. A value is one of the core, in some program, or a slot of the run.
-record(st, {program       :: tessera_nif:builder() | undefined,
             memo = #{}    :: #{term() => term()},    % node id => value, or values of a tuple
             params = #{}  :: #{non_neg_integer() => term()},
             here = #{}    :: tessera_nx_expr:ids(),
             in_region = false :: boolean(),
             effects = #{} :: tessera_nx_expr:ids(),
             handled = []  :: [atom()],
             is_cached = true :: boolean(),           % whether programs may be known already
             holds = true  :: boolean(),              % tensors in functions are arguments, not literals
             steps = []    :: [term()],               % last first
             held = #{}    :: #{tessera_nx_ops:form() => [{binary() | none, term()}]},
             next = 0      :: non_neg_integer(),
             exports = #{} :: #{term() => term()},    % {Program, Id} => slot, and Program => [{Slot, Value}]
             imports = #{} :: #{term() => term()}}).  % {Program, Slot} => value, and Program => [Slot]
-record(slot, {name :: term(), form :: tessera_nx_ops:form()}).
