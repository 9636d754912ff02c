%% @private Does for the code of a .beam file what tessera_flow does for abstract code: finds where Erlang itself inspects a tensor. It
%% handles modules without debug_info. The registers have kinds; each label gets the joined kinds of all jumps to it, until none changes,
%% and only then findings are reported. So a reported term is a tensor on every path. Comparisons have no line in such code: a finding has
%% the function's line.
-module(tessera_flow_beam).
-include("tessera.hrl").
-export([code/1, analyse/3]).
-export_type([code/0]).

-type label() :: pos_integer().
-type body() :: #{entry := label(), line := place(), blocks := #{label() => [tuple() | atom()]}}.
-type code() :: #{module := module(), functions := #{{atom(), arity()} => body()}}.
-type place() :: {string(), non_neg_integer()}.
-type regs() :: #{{x | y, non_neg_integer()} => tessera_kind:kind()}. % without those that are `any'

-define(STEPS, 50000).
-define(DEPTH, 50).
-define(IS_TENSOR(K), (K =:= tensor orelse K =:= flag)).
-define(CALLS, {fun apply_kind/3, fun arity/1}).

-record(s, {code           :: code(),
            steps = ?STEPS :: non_neg_integer(),
            stack = []     :: [{atom(), arity()}],                     % the functions that are being evaluated
            memo = #{}     :: #{term() => {tessera_kind:kind(), #{label() => regs()}}},
            reported = #{} :: #{term() => true},
            reports = false :: boolean(),
            found = #{}    :: #{tessera_flow:finding() => true},
            %% of the function that is being evaluated:
            states = #{}   :: #{label() => regs()},
            work = []      :: [label()],
            result = none  :: none | tessera_kind:kind()}).

%% ---- the code of a module

-spec code(binary()) -> code().
code(Beam) ->
    {beam_file, Module, _, _, _, Functions} = beam_disasm:file(Beam),
    Lines = lines(Module, Beam),
    #{module => Module,
      functions => maps:from_list([{{Name, Arity}, body(Entry, Code, Lines)} || {function, Name, Arity, Entry, Code} <- Functions])}.

body(Entry, Code, Lines) -> #{entry => Entry, line => first_line(Code, Lines), blocks => blocks(Code)}.

blocks([{label, Label} | Code]) -> (blocks(Code))#{Label => Code};
blocks([_ | Code]) -> blocks(Code);
blocks([]) -> #{}.

first_line(Code, Lines) ->
    case [N || {line, N} <- Code, is_map_key(N, Lines)] of
        [N | _] -> map_get(N, Lines);
        [] -> {"", 0}
    end.

%% The places that the instruction `line' has numbers of, from 1. They follow each other as lines, sometimes with the number
%% of a file between; file 0 is the module's.
lines(Module, Beam) ->
    case beam_lib:chunks(Beam, ["Line"], [allow_missing_chunks]) of
        {ok, {_, [{_, <<_:64, _:32, Count:32, Names:32, Table/binary>>}]}} -> lines(Count, Names, atom_to_list(Module) ++ ".erl", Table);
        _ -> #{}
    end.

lines(Count, Names, Own, Table) ->
    {Places, Rest} = places(Count, 0, Table, []),
    Files = maps:from_list(lists:zip(lists:seq(0, Names), [Own | file_names(Names, Rest)])),
    maps:from_list([{N, {maps:get(File, Files, Own), Line}}
                    || {N, {File, Line}} <- lists:zip(lists:seq(1, length(Places)), lists:reverse(Places))]).

places(0, _, Rest, Places) -> {Places, Rest};
places(Count, File, Bytes, Places) ->
    case compact(Bytes) of
        {1, Line, Rest} -> places(Count - 1, File, Rest, [{File, Line} | Places]);
        {2, Other, Rest} -> places(Count, Other, Rest, Places)
    end.

%% A number with a tag, as the compiler writes them.
compact(<<N:4, 0:1, Tag:3, Rest/binary>>) -> {Tag, N, Rest};
compact(<<High:3, 0:1, 1:1, Tag:3, Low, Rest/binary>>) -> {Tag, High * 256 + Low, Rest};
compact(<<Less:3, 1:1, 1:1, Tag:3, Rest/binary>>) ->
    Bits = (Less + 2) * 8,
    <<N:Bits, Rest1/binary>> = Rest,
    {Tag, N, Rest1}.

file_names(0, _) -> [];
file_names(Count, <<Bytes:16, Name:Bytes/binary, Rest/binary>>) ->
    [unicode:characters_to_list(Name) | file_names(Count - 1, Rest)].

%% ---- a function

%% The findings for arguments of these kinds; of a fun, the terms that it holds are the last ones. None if it takes too many steps.
-spec analyse(code(), {atom(), arity()}, [tessera_kind:kind()]) -> [tessera_flow:finding()].
analyse(Code, Function, Kinds) ->
    case local(Function, Kinds, #s{code = Code, reports = true}) of
        {_, #s{steps = 0}} -> [];
        {_, #s{found = Found}} -> lists:sort(maps:keys(Found))
    end.

%% A recursive call gives `any'.
local(Function, Args, #s{code = #{functions := Functions}, stack = Stack} = S) ->
    case Functions of
        #{Function := Body} when element(2, Function) =:= length(Args), length(Stack) =< ?DEPTH ->
            case lists:member(Function, Stack) of
                true -> {any, S};
                false -> evaluated({Function, Args}, Body, S)
            end;
        _ -> {any, S}
    end.

evaluated({Function, _} = Key, Body, #s{stack = Stack} = S) ->
    {Kind, States, S1} = known(Key, Body, S#s{stack = [Function | Stack]}),
    S2 = case S of
             #s{reports = true, reported = Reported} when not is_map_key(Key, Reported) ->
                 report_all(Body, States, S1#s{reported = Reported#{Key => true}});
             _ -> S1
         end,
    {Kind, S2#s{stack = Stack}}.

%% The kind of the result, and the registers at each label that is reached.
known(Key, _, #s{memo = Memo} = S) when is_map_key(Key, Memo) ->
    {Kind, States} = map_get(Key, Memo),
    {Kind, States, S};
known({_, Args} = Key, #{entry := Entry} = Body, #s{reports = Reports} = S) ->
    Regs = lists:foldl(fun({I, Kind}, Acc) -> set({x, I}, Kind, Acc) end, #{}, numbered(Args)),
    S1 = until_unchanged(Body, S#s{reports = false, states = #{Entry => Regs}, work = [Entry], result = none}),
    Kind = case S1#s.result of
               none -> any;
               Known -> Known
           end,
    {Kind, S1#s.states, S1#s{reports = Reports, memo = (S1#s.memo)#{Key => {Kind, S1#s.states}},
                             states = S#s.states, work = S#s.work, result = S#s.result}}.

until_unchanged(_, #s{work = []} = S) -> S;
until_unchanged(#{blocks := Blocks} = Body, #s{work = [Label | Work], states = States} = S) ->
    until_unchanged(Body, run(maps:get(Label, Blocks, []), map_get(Label, States), S#s{work = Work})).

report_all(#{blocks := Blocks}, States, S) ->
    maps:fold(fun(Label, Regs, S0) -> run(maps:get(Label, Blocks, []), Regs, S0) end, S, States).

run(_, _, #s{steps = 0} = S) -> S#s{work = []};
run([], _, S) -> S;
run([Instruction | Code], Regs, #s{steps = Steps} = S) ->
    case step(Instruction, Regs, S#s{steps = Steps - 1}) of
        {next, Regs1, S1} -> run(Code, Regs1, S1);
        {stop, S1} -> S1
    end.

%% A jump with these registers.
flow(0, _, S) -> S;
flow(_, _, #s{reports = true} = S) -> S;
flow(Label, Regs, #s{states = States, work = Work} = S) ->
    Joined = case States of
                 #{Label := Known} -> joined(Known, Regs);
                 _ -> Regs
             end,
    case States of
        #{Label := Joined} -> S;
        _ -> S#s{states = States#{Label => Joined}, work = [Label | lists:delete(Label, Work)]}
    end.

joined(A, B) ->
    maps:filtermap(fun(Register, Kind) ->
                           case tessera_kind:join(Kind, maps:get(Register, B, any)) of
                               any -> false;
                               Joined -> {true, Joined}
                           end
                   end, A).

returned(Kind, #s{result = none} = S) -> S#s{result = Kind};
returned(Kind, #s{result = Before} = S) -> S#s{result = tessera_kind:join(Before, Kind)}.

numbered(List) -> lists:zip(lists:seq(0, length(List) - 1), List).

%% ---- registers

value({tr, Register, _}, Regs) -> value(Register, Regs);
value({F, _} = Register, Regs) when F =:= x; F =:= y -> maps:get(Register, Regs, any);
value({fr, _}, _) -> number;
value({Literal, Value}, _) when Literal =:= integer; Literal =:= float; Literal =:= atom -> {term, Value};
value(nil, _) -> {list, []};
value({literal, F}, _) when is_function(F) ->
    {_, Module} = erlang:fun_info(F, module),
    {_, Name} = erlang:fun_info(F, name),
    {remote, Module, Name};
value({literal, Term}, _) -> tessera_kind:of_term(Term);
value(_, _) -> any.

values(Operands, Regs) -> [value(Operand, Regs) || Operand <- Operands].

set({tr, Register, _}, Kind, Regs) -> set(Register, Kind, Regs);
set(Register, any, Regs) -> maps:remove(Register, Regs);
set({F, _} = Register, Kind, Regs) when F =:= x; F =:= y -> Regs#{Register => Kind};
set(_, _, Regs) -> Regs.

only_y(Regs) -> maps:filter(fun({F, _}, _) -> F =:= y end, Regs).

arguments(Count, Regs) -> [value({x, I}, Regs) || I <- lists:seq(0, Count - 1)].

%% ---- instructions

%% The registers after an instruction, if the next one follows it.
-spec step(tuple() | atom(), regs(), #s{}) -> {next, regs(), #s{}} | {stop, #s{}}.
step({label, Label}, Regs, S) -> {stop, flow(Label, Regs, S)};
step({line, _}, Regs, S) -> {next, Regs, S};
step({move, From, To}, Regs, S) -> {next, set(To, value(From, Regs), Regs), S};
step({swap, A, B}, Regs, S) -> {next, set(A, value(B, Regs), set(B, value(A, Regs), Regs)), S};
step({jump, {f, Label}}, Regs, S) -> {stop, flow(Label, Regs, S)};
step(return, Regs, S) -> {stop, returned(value({x, 0}, Regs), S)};
step({test, Test, {f, Fail}, Operands}, Regs, S) -> test(Test, values(Operands, Regs), Operands, Fail, Regs, S);
step({select_val, Operand, {f, Fail}, {list, List}}, Regs, S) ->
    select(value(Operand, Regs), pairs(List), Fail, Regs, S);
step({select_tuple_arity, Operand, {f, Fail}, {list, List}}, Regs, S) ->
    Kind = value(Operand, Regs),
    {stop, lists:foldl(fun({Arity, {f, Label}}, S0) ->
                               case has_arity(Kind, Arity) of
                                   no -> S0;
                                   _ -> flow(Label, Regs, S0)
                               end
                       end, flow(Fail, Regs, S), pairs(List))};
step({bif, Name, {f, Fail}, Operands, To}, Regs, S) -> bif(Name, Operands, Fail, To, Regs, S);
step({gc_bif, Name, {f, Fail}, _, Operands, To}, Regs, S) -> bif(Name, Operands, Fail, To, Regs, S);
step({call, Count, Function}, Regs, S) -> called(Function, Count, Regs, S);
step({call_only, Count, Function}, Regs, S) -> last(called(Function, Count, Regs, S));
step({call_last, Count, Function, _}, Regs, S) -> last(called(Function, Count, Regs, S));
step({call_ext, Count, Function}, Regs, S) -> called(Function, Count, Regs, S);
step({call_ext_only, Count, Function}, Regs, S) -> last(called(Function, Count, Regs, S));
step({call_ext_last, Count, Function, _}, Regs, S) -> last(called(Function, Count, Regs, S));
step({call_fun, Count}, Regs, S) -> fun_called(value({x, Count}, Regs), Count, Regs, S);
step({call_fun2, _, Count, F}, Regs, S) -> fun_called(value(F, Regs), Count, Regs, S);
step(Instruction, Regs, S) -> data(Instruction, Regs, S).

%% Instructions that build and read terms.
data({get_tuple_element, From, Index, To}, Regs, S) ->
    {next, set(To, tessera_flow_calls:element_kind(Index + 1, value(From, Regs)), Regs), S};
data({get_list, From, Head, Tail}, Regs, S) ->
    {H, T} = head_and_tail(value(From, Regs)),
    {next, set(Tail, T, set(Head, H, Regs)), S};
data({get_hd, From, To}, Regs, S) -> {next, set(To, element(1, head_and_tail(value(From, Regs))), Regs), S};
data({get_tl, From, To}, Regs, S) -> {next, set(To, element(2, head_and_tail(value(From, Regs))), Regs), S};
data({put_list, Head, Tail, To}, Regs, S) -> {next, set(To, cons(value(Head, Regs), value(Tail, Regs)), Regs), S};
data({put_tuple2, To, {list, Items}}, Regs, S) -> {next, set(To, {tuple, values(Items, Regs)}, Regs), S};
data({update_record, _, _, From, To, {list, Changes}}, Regs, S) ->
    {next, set(To, lists:foldl(fun({Index, Value}, Kind) -> with_element(Index, value(Value, Regs), Kind) end,
                               value(From, Regs), pairs(Changes)), Regs), S};
data({Put, {f, Fail}, From, To, _, {list, Fields}}, Regs, S) when Put =:= put_map_assoc; Put =:= put_map_exact ->
    Kind = lists:foldl(fun({Key, Value}, Map) -> put_field(value(Key, Regs), value(Value, Regs), Map) end,
                       map_kind(value(From, Regs)), pairs(Fields)),
    {next, set(To, Kind, Regs), flow(Fail, Regs, S)};
data({get_map_elements, {f, Fail}, From, {list, Fields}}, Regs, S) -> map_elements(value(From, Regs), pairs(Fields), Fail, Regs, S);
data({make_fun3, {_, Name, Arity}, _, _, To, {list, Held}}, Regs, S) -> {next, set(To, {local, {Name, Arity}, values(Held, Regs)}, Regs), S};
data({test_heap, _, _}, Regs, S) -> {next, Regs, S};
data({allocate, _, _}, Regs, S) -> {next, Regs, S};
data({allocate_heap, _, _, _}, Regs, S) -> {next, Regs, S};
data({init_yregs, {list, Registers}}, Regs, S) -> {next, maps:without(Registers, Regs), S};
data({deallocate, _}, Regs, S) -> {next, maps:filter(fun({F, _}, _) -> F =:= x end, Regs), S};
data({trim, Count, _}, Regs, S) -> {next, maps:fold(fun(Register, Kind, Acc) -> trimmed(Register, Count, Kind, Acc) end, #{}, Regs), S};
data({Try, _, {f, Label}}, Regs, S) when Try =:= 'try'; Try =:= 'catch' -> {next, Regs, flow(Label, #{}, S)};
data({try_end, _}, Regs, S) -> {next, Regs, S};
data({fmove, _, To}, Regs, S) -> {next, set(To, number, Regs), S};
data({func_info, _, _, _}, _, S) -> {stop, S};
data(if_end, _, S) -> {stop, S};
data({Raise, _}, _, S) when Raise =:= badmatch; Raise =:= case_end; Raise =:= try_case_end; Raise =:= badrecord -> {stop, S};
%% After any other one nothing is known.
data(Instruction, _, S) -> {next, #{}, lists:foldl(fun(Label, S0) -> flow(Label, #{}, S0) end, S, labels(Instruction))}.

labels({f, Label}) when is_integer(Label) -> [Label];
labels(Tuple) when is_tuple(Tuple) -> labels(tuple_to_list(Tuple));
labels([Head | Tail]) -> labels(Head) ++ labels(Tail);
labels(_) -> [].

pairs([A, B | List]) -> [{A, B} | pairs(List)];
pairs([]) -> [].

trimmed({y, N}, Count, _, Acc) when N < Count -> Acc;
trimmed({y, N}, Count, Kind, Acc) -> Acc#{{y, N - Count} => Kind};
trimmed(Register, _, Kind, Acc) -> Acc#{Register => Kind}.

head_and_tail({list, [Head | Tail]}) -> {Head, {list, Tail}};
head_and_tail({list_of, Kind}) -> {Kind, {list_of, Kind}};
head_and_tail(_) -> {any, any}.

cons(Head, {list, Tail}) -> {list, [Head | Tail]};
cons(Head, {list_of, Kind}) -> {list_of, tessera_kind:join(Head, Kind)};
cons(_, _) -> any.

with_element(Index, Kind, {tuple, Kinds}) when Index =< length(Kinds) ->
    {Before, [_ | After]} = lists:split(Index - 1, Kinds),
    {tuple, Before ++ [Kind | After]};
with_element(_, _, _) -> any.

map_kind({map, Kinds}) -> {map, Kinds};
map_kind(_) -> any.

put_field({term, Key}, Kind, {map, Kinds}) -> {map, Kinds#{Key => Kind}};
put_field(_, _, _) -> any.

map_elements(Kind, _, Fail, Regs, S) when ?IS_TENSOR(Kind) -> {stop, flow(Fail, Regs, S)};
map_elements(Kind, Fields, Fail, Regs, S) ->
    {next, lists:foldl(fun({Key, To}, Acc) -> set(To, field(value(Key, Regs), Kind), Acc) end, Regs, Fields), flow(Fail, Regs, S)}.

field({term, Key}, {map, Kinds}) -> maps:get(Key, Kinds, any);
field(_, _) -> any.

%% ---- tests and choices

test(Test, [A, B] = Kinds, Operands, Fail, Regs, S) when Test =:= is_lt; Test =:= is_ge; Test =:= is_eq; Test =:= is_ne;
                                                        Test =:= is_eq_exact; Test =:= is_ne_exact ->
    S1 = compared(operator(Test), Kinds, Operands, S),
    branch(outcome(Test, A, B), Fail, Regs, S1);
test(test_arity, [Kind | _], [_, Arity], Fail, Regs, S) -> branch(has_arity(Kind, Arity), Fail, Regs, S);
test(is_tagged_tuple, [Kind | _], [_, Arity, {atom, Tag}], Fail, Regs, S) -> branch(is_tagged(Kind, Arity, Tag), Fail, Regs, S);
test(has_map_fields, [Kind | _], _, Fail, Regs, S) when ?IS_TENSOR(Kind) -> branch(no, Fail, Regs, S);
test(Test, [Kind | _], _, Fail, Regs, S) -> branch(has_type(Test, Kind), Fail, Regs, S);
test(_, [], _, Fail, Regs, S) -> branch(maybe_so, Fail, Regs, S).

branch(yes, _, Regs, S) -> {next, Regs, S};
branch(no, Fail, Regs, S) -> {stop, flow(Fail, Regs, S)};
branch(maybe_so, Fail, Regs, S) -> {next, Regs, flow(Fail, Regs, S)}.

operator(is_lt) -> '<';
operator(is_ge) -> '>=';
operator(is_eq) -> '==';
operator(is_ne) -> '/=';
operator(is_eq_exact) -> '=:=';
operator(is_ne_exact) -> '=/='.

%% The facts that follow from equality: as an option, or as the pattern of a clause that is not taken.
outcome(is_eq_exact, A, B) -> equal(A, B);
outcome(is_ne_exact, A, B) ->
    case equal(A, B) of
        yes -> no;
        no -> yes;
        maybe_so -> maybe_so
    end;
outcome(_, _, _) -> maybe_so.

equal({term, Term}, {term, Term}) -> yes;
equal({term, _}, {term, _}) -> no;
equal(A, {term, _}) -> differs(A);
equal({term, _}, B) -> differs(B);
equal(_, _) -> maybe_so.

differs(Kind) when ?IS_TENSOR(Kind) -> no;
differs({Tag, _}) when Tag =:= tuple; Tag =:= list; Tag =:= list_of; Tag =:= map -> no;
differs(_) -> maybe_so.

has_arity(Kind, Arity) when ?IS_TENSOR(Kind) -> no_unless(Arity =:= record_info(size, tessera), yes);
has_arity({tuple, Kinds}, Arity) -> no_unless(Arity =:= length(Kinds), yes);
has_arity(_, _) -> maybe_so.

is_tagged({tuple, [{term, Tag} | _]} = Kind, Arity, Tag) -> has_arity(Kind, Arity);
is_tagged({tuple, [{term, _} | _]}, _, _) -> no;
is_tagged({tuple, _} = Kind, Arity, _) -> no_unless(has_arity(Kind, Arity) =/= no, maybe_so);
is_tagged(Kind, Arity, Tag) when ?IS_TENSOR(Kind) -> no_unless(Tag =:= tessera, has_arity(Kind, Arity));
is_tagged(Kind, _, _) -> has_type(is_tuple, Kind).

no_unless(true, Outcome) -> Outcome;
no_unless(false, _) -> no.

has_type(Test, {list, List}) when Test =:= is_nil; Test =:= is_nonempty_list -> no_unless((List =:= []) =:= (Test =:= is_nil), yes);
has_type(Test, Kind) when Test =:= is_nil; Test =:= is_nonempty_list -> no_unless(has_type(is_list, Kind) =/= no, maybe_so);
has_type(is_bitstr, Kind) -> has_type(is_bitstring, Kind);
has_type(Test, Kind) ->
    case tessera_kind:type_test(Test, Kind) of
        true -> yes;
        false -> no;
        _ -> maybe_so
    end.

%% A tensor differs from all these values.
select(Kind, Pairs, Fail, Regs, S) when ?IS_TENSOR(Kind) ->
    Sought = [Value || {{_, Value} = Operand, _} <- Pairs, is_atom(Value) orelse is_number(Value),
                       tessera_flow_calls:is_looked_for(Value, Kind), Operand =/= {f, Value}],
    {stop, flow(Fail, Regs, lists:foldl(fun(Value, S0) -> report(pattern, io_lib:format("~0tp", [Value]), equal, S0) end, S, Sought))};
select(Kind, Pairs, Fail, Regs, S) ->
    Labels = [Label || {Operand, {f, Label}} <- Pairs, equal(Kind, value(Operand, Regs)) =/= no],
    {stop, lists:foldl(fun(Label, S0) -> flow(Label, Regs, S0) end, flow(Fail, Regs, S), Labels)}.

%% ---- operators

bif(Name, Operands, Fail, To, Regs, S) ->
    Kinds = values(Operands, Regs),
    S1 = flow(Fail, Regs, S),
    case tessera_flow_calls:operation(Name, length(Kinds)) of
        {arithmetic, Ours} when Name =:= max; Name =:= min ->
            {next, set(To, any, Regs), reported_call(lists:any(fun is_tensor/1, Kinds), Name, Operands, Kinds, Ours, S1)};
        {arithmetic, Ours} ->
            case {lists:any(fun is_tensor/1, Kinds), Fail} of
                {true, 0} -> {stop, S1}; % it raises
                {true, _} -> {stop, report(guard, text(Name, Operands, Kinds), Ours, S1)};
                {false, _} -> {next, set(To, tessera_flow_calls:arithmetic_kind(Kinds), Regs), S1}
            end;
        {_, _} -> {next, set(To, static, Regs), compared(Name, Kinds, Operands, S1)};
        none ->
            {Kind, S2} = tessera_flow_calls:erlang_call(Name, Kinds, ?CALLS, S1),
            {next, set(To, Kind, Regs), S2}
    end.

is_tensor(Kind) -> ?IS_TENSOR(Kind).

%% As the source would have it: compilers turn `X > 0' into `0 < X'.
compared('<', [Left, Right], [A, B], S) when not ?IS_TENSOR(Left), ?IS_TENSOR(Right) -> compared('>', [Right, Left], [B, A], S);
compared('>=', [Left, Right], [A, B], S) when not ?IS_TENSOR(Left), ?IS_TENSOR(Right) -> compared('=<', [Right, Left], [B, A], S);
compared(Op, Kinds, Operands, S) ->
    IsWrong = case tessera_flow_calls:operation(Op, 2) of
                  {order, Ours} -> lists:any(fun is_tensor/1, Kinds);
                  {equality, Ours} -> tessera_flow_calls:is_equality(Kinds)
              end,
    reported_call(IsWrong, Op, Operands, Kinds, Ours, S).

reported_call(true, Name, Operands, Kinds, Ours, S) -> report(comparison, text(Name, Operands, Kinds), Ours, S);
reported_call(false, _, _, _, _, S) -> S.

%% ---- calls

last({next, Regs, S}) -> {stop, returned(value({x, 0}, Regs), S)};
last(Stop) -> Stop.

called(Function, Count, Regs, S) ->
    case is_raising(Function) of
        true -> {stop, S};
        false ->
            {Kind, S1} = result(Function, arguments(Count, Regs), S),
            {next, set({x, 0}, Kind, only_y(Regs)), S1}
    end.

fun_called(F, Count, Regs, S) ->
    {Kind, S1} = apply_kind(F, arguments(Count, Regs), S),
    {next, set({x, 0}, Kind, only_y(Regs)), S1}.

is_raising({extfunc, erlang, Name, _}) -> lists:member(Name, [error, exit, throw, raise, nif_error]);
is_raising(_) -> false.

result({extfunc, Module, Name, _}, Args, #s{code = #{module := Module}} = S) -> local({Name, length(Args)}, Args, S);
result({extfunc, Module, Name, _}, Args, S) -> remote(Module, Name, Args, S);
result({_, Name, Arity}, Args, S) -> local({Name, Arity}, Args, S).

%% max(X, 0), lists:max([X, Y])
remote(erlang, Name, Args, S) ->
    case tessera_flow_calls:operation(Name, length(Args)) of
        {arithmetic, Ours} when Name =:= max; Name =:= min ->
            {any, reported_call(lists:any(fun is_tensor/1, Args), Name, Args, Args, Ours, S)};
        {Comparison, _} when Comparison =/= arithmetic -> {static, compared(Name, Args, Args, S)};
        _ -> tessera_flow_calls:remote(erlang, Name, Args, ?CALLS, S)
    end;
remote(lists, Name, [List], S) when Name =:= max; Name =:= min ->
    case tessera_kind:elements(List) of
        {ok, Kind} when ?IS_TENSOR(Kind) -> {any, report(comparison, ["lists:", atom_to_list(Name), "(...)"], Name, S)};
        _ -> {any, S}
    end;
remote(Module, Name, Args, S) -> tessera_flow_calls:remote(Module, Name, Args, ?CALLS, S).

%% Applies a fun of that kind to arguments.
apply_kind({local, Function, Held}, Args, S) -> local(Function, Args ++ Held, S);
apply_kind({remote, Module, Name}, Args, S) -> remote(Module, Name, Args, S);
apply_kind(Kind, Args, S) -> tessera_flow_calls:apply_kind(Kind, Args, ?CALLS, S).

arity({local, {_, Arity}, Held}) -> Arity - length(Held);
arity(_) -> none.

%% ---- reports

report(_, _, _, #s{reports = false} = S) -> S;
report(Why, Text, Ours, #s{code = #{functions := Functions}, stack = [Function | _], found = Found} = S) ->
    #{Function := #{line := Line}} = Functions,
    S#s{found = Found#{{{compiled, Line, name(Function)}, Why, lists:flatten(Text), Ours} => true}}.

%% The function in whose source it stands.
name({Name, Arity}) ->
    case re:run(atom_to_list(Name), "^-(?:fun\\.)?(.+/[0-9]+)-", [{capture, all_but_first, list}, unicode]) of
        {match, [Outer]} -> Outer;
        nomatch -> lists:flatten(io_lib:format("~ts/~b", [Name, Arity]))
    end.

text(Name, Operands, Kinds) ->
    Texts = lists:zipwith(fun operand/2, Operands, Kinds),
    case {tessera_flow_calls:operation(Name, length(Texts)), Texts} of
        {{_, _}, [A, B]} when Name =/= max, Name =/= min -> [A, " ", atom_to_list(Name), " ", B];
        _ -> [atom_to_list(Name), "(", lists:join(", ", Texts), ")"]
    end.

operand(_, Kind) when ?IS_TENSOR(Kind) -> "Tensor";
operand(_, {term, Term}) -> io_lib:format("~0tp", [Term]);
operand(_, _) -> "_".
