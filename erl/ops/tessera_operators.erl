%% @private Erlang's operators and branches for operands that may be tensors: tessera_transform replaces the written
%% ones by calls of this module. Without tensors they do the same as Erlang's.
-module(tessera_operators).
-include("tessera.hrl").
-include("../term/tessera_number.hrl").
-compile({no_auto_import, [abs/1, ceil/1, float/1, floor/1, max/2, min/2, round/1, trunc/1]}).
-export(['+'/2, '-'/2, '*'/2, '/'/2, 'div'/2, 'rem'/2, 'band'/2, 'bor'/2, 'bxor'/2, 'bsl'/2, 'bsr'/2, '+'/1, '-'/1,
         'bnot'/1, '=='/2, '/='/2, '=:='/2, '=/='/2, '<'/2, '=<'/2, '>'/2, '>='/2, 'and'/2, 'or'/2, 'xor'/2, 'not'/1,
         'andalso'/2, 'orelse'/2, abs/1, ceil/1, float/1, floor/1, max/2, min/2, round/1, trunc/1, math/2]).
-export([clauses/2, match/2, other/2, guard/1, filter/2, plain/2]).
-export_type([site/0]).

%% The location of a branch in the source, and its condition.
-type site() :: {string(), non_neg_integer(),
                 'if' | filter | '?=' | {'case' | 'try', term()} | {function, {module(), atom(), [term()]}}}.
-type clause() :: fun(() -> false | {boolean() | tessera_type:tensor(), fun(() -> term())}).

%% Limit for the nesting of a branch on a traced value inside of itself: only a recursive function
%% reaches it.
-define(MAX_NESTED, 200).
-define(NESTED, '$tessera_nested').

%% ---- arithmetic

-define(IS_TENSOR(X), is_record(X, tessera)).
-define(BINARY(Op), Op(A, B) when ?IS_TENSOR(A); ?IS_TENSOR(B) -> apply(tessera_elementwise, tessera_names:function(Op, 2), [A, B]);
                    Op(A, B) -> erlang:Op(A, B)).
-define(UNARY(Op), Op(A) when ?IS_TENSOR(A) -> apply(tessera_elementwise, tessera_names:function(Op, 1), [A]); Op(A) -> erlang:Op(A)).

-spec '+'(term(), term()) -> term().
?BINARY('+').
-spec '-'(term(), term()) -> term().
?BINARY('-').
-spec '*'(term(), term()) -> term().
?BINARY('*').
-spec '/'(term(), term()) -> term().
?BINARY('/').
-spec 'div'(term(), term()) -> term().
?BINARY('div').
-spec 'rem'(term(), term()) -> term().
?BINARY('rem').
-spec 'band'(term(), term()) -> term().
?BINARY('band').
-spec 'bor'(term(), term()) -> term().
?BINARY('bor').
-spec 'bxor'(term(), term()) -> term().
?BINARY('bxor').
-spec 'bsl'(term(), term()) -> term().
?BINARY('bsl').
-spec 'bsr'(term(), term()) -> term().
?BINARY('bsr').
-spec '<'(term(), term()) -> term().
?BINARY('<').
-spec '=<'(term(), term()) -> term().
?BINARY('=<').
-spec '>'(term(), term()) -> term().
?BINARY('>').
-spec '>='(term(), term()) -> term().
?BINARY('>=').
-spec max(term(), term()) -> term().
?BINARY(max).
-spec min(term(), term()) -> term().
?BINARY(min).
-spec '+'(term()) -> term().
'+'(A) when ?IS_TENSOR(A) -> tessera_array:tensor(A);
'+'(A) -> erlang:'+'(A).
-spec '-'(term()) -> term().
?UNARY('-').
-spec 'bnot'(term()) -> term().
?UNARY('bnot').
-spec 'not'(term()) -> term().
?UNARY('not').
-spec abs(term()) -> term().
?UNARY(abs).
-spec ceil(term()) -> term().
?UNARY(ceil).
-spec floor(term()) -> term().
?UNARY(floor).
-spec round(term()) -> term().
?UNARY(round).

-spec float(term()) -> term().
float(#tessera{type = Type} = X) -> tessera_ops:as_type(X, tessera_type:to_float(Type));
float(X) -> erlang:float(X).

%% Towards 0; the type stays, as with the other roundings, which also refuse complex numbers.
-spec trunc(term()) -> term().
trunc(#tessera{type = Type} = X) ->
    case tessera_type:is_inexact_type(Type) of
        true -> Floor = tessera_elementwise:floor(X), tessera_elementwise:select(tessera_elementwise:less(X, 0), tessera_elementwise:ceil(X), Floor);
        false -> X
    end;
trunc(X) -> erlang:trunc(X).

%% A function of the module math.
-spec math(atom(), [term()]) -> term().
math(Name, Args) ->
    case lists:any(fun tessera_array:is_tensor/1, Args) of
        true -> math_op(Name, Args);
        false -> apply(math, Name, Args)
    end.

math_op(log2, [X]) -> tessera_floats:log2(X);
math_op(log10, [X]) -> tessera_floats:log10(X);
math_op(pow, [A, B]) -> tessera_ops:pow(A, B);
math_op(atan2, [A, B]) -> tessera_complex:atan2(A, B);
math_op(Name, Args) ->
    case tessera_names:math_function(Name, length(Args)) of
        none -> apply(math, Name, Args);
        Function -> apply(tessera_elementwise, Function, Args)
    end.

%% ---- equality: a tensor equals no atom, list, map or other tuple

-spec '=='(term(), term()) -> term().
'=='(A, B) -> equal('==', A, B).

-spec '=:='(term(), term()) -> term().
'=:='(A, B) -> equal('=:=', A, B).

-spec '/='(term(), term()) -> term().
'/='(A, B) -> 'not'(equal('==', A, B)).

-spec '=/='(term(), term()) -> term().
'=/='(A, B) -> 'not'(equal('=:=', A, B)).

equal(Op, A, B) when ?IS_TENSOR(A); ?IS_TENSOR(B) ->
    case {is_operand(A), is_operand(B)} of
        {true, true} -> tessera_elementwise:equal(A, B);
        {true, false} when is_boolean(B) -> holds(A, B);
        {false, true} when is_boolean(A) -> holds(B, A);
        _ -> erlang:Op(A, B)
    end;
equal(Op, A, B) -> erlang:Op(A, B).

is_operand(X) -> ?IS_TENSOR(X) orelse ?IS_REAL_NUMBER(X) orelse ?IS_COMPLEX_NUMBER(X).

%% Whether a tensor of truths is true, or false.
holds(X, true) -> tessera_elementwise:not_equal(X, 0);
holds(X, false) -> tessera_elementwise:logical_not(X).

%% ---- truth

-spec 'and'(term(), term()) -> term().
'and'(A, B) when ?IS_TENSOR(A); ?IS_TENSOR(B) -> tessera_elementwise:logical_and(truth(A), truth(B));
'and'(A, B) -> erlang:'and'(A, B).

-spec 'or'(term(), term()) -> term().
'or'(A, B) when ?IS_TENSOR(A); ?IS_TENSOR(B) -> tessera_elementwise:logical_or(truth(A), truth(B));
'or'(A, B) -> erlang:'or'(A, B).

-spec 'xor'(term(), term()) -> term().
'xor'(A, B) when ?IS_TENSOR(A); ?IS_TENSOR(B) -> tessera_elementwise:logical_xor(truth(A), truth(B));
'xor'(A, B) -> erlang:'xor'(A, B).

truth(true) -> 1;
truth(false) -> 0;
truth(Operand) -> Operand.

%% The right operand is computed unless the left one is known and decides.
-spec 'andalso'(term(), fun(() -> term())) -> term().
'andalso'(A, B) when ?IS_TENSOR(A) ->
    case B() of
        true -> A;
        false -> false;
        Other -> tessera_elementwise:logical_and(A, Other)
    end;
'andalso'(A, B) -> A andalso B().

-spec 'orelse'(term(), fun(() -> term())) -> term().
'orelse'(A, B) when ?IS_TENSOR(A) ->
    case B() of
        true -> true;
        false -> A;
        Other -> tessera_elementwise:logical_or(A, Other)
    end;
'orelse'(A, B) -> A orelse B().

%% ---- branches

%% The body of the first clause whose condition holds. Each clause gives its condition and its body, or false if
%% its patterns do not match. If conditions are values of the traced program, the choice is an op of it.
-spec clauses([clause()], site()) -> term().
clauses(Clauses, Site) -> clauses(Clauses, Site, false).

clauses([Clause | Clauses], Site, IsTraced) ->
    case Clause() of
        {true, Body} -> Body();
        {false, _} -> clauses(Clauses, Site, IsTraced);
        false -> clauses(Clauses, Site, IsTraced);
        {Condition, Body} -> branch(Condition, Body, fun(Traced) -> clauses(Clauses, Site, Traced) end, Site, IsTraced)
    end;
clauses([], Site, IsTraced) -> no_clause(Site, IsTraced).

%% A tensor with contents decides at once.
branch(Condition, True, False, Site, IsTraced) ->
    is_single(Condition) orelse fail(Site, invalid_argument, not_single(Condition)),
    case tessera_trace:is_tracing() of
        true -> nested(Site, fun() -> tessera_control:choose(Condition, True, fun() -> False(true) end) end);
        false ->
            case tessera_array:to_number(Condition) == 0 of
                true -> False(IsTraced);
                false -> True()
            end
    end.

is_single(#tessera{shape = Shape}) -> Shape =:= {}.

not_single(Condition) ->
    ["the condition is ", tessera_error:show(Condition), ", expected one value: write tessera:all/1 or tessera:any/1 "
     "of it, or tessera:select/3, which chooses for each element"].

%% Both branches are traced, so a function that calls itself in one of them would never end.
nested({File, Line, _} = Site, Choose) ->
    Key = {?NESTED, File, Line},
    Outer = get(Key),
    Outer =:= undefined orelse Outer < ?MAX_NESTED orelse
        fail(Site, failed_precondition,
             ["the branch is inside of itself ", integer_to_list(?MAX_NESTED), " times: a function that calls itself "
              "under a condition that is traced has no end. Write tessera:while/3"]),
    tessera_trace:with_entry(Key, deeper(Outer), Choose).

deeper(undefined) -> 1;
deeper(Depth) -> Depth + 1.

%% Erlang's own error, or an error for a condition that is not known yet.
-spec no_clause(site(), boolean()) -> no_return().
no_clause(Site, true) ->
    fail(Site, failed_precondition,
         ["which clause is taken depends on a value that is traced, and so does whether there is one. Add a last "
          "clause that always matches, such as ", default(Site)]);
no_clause({_, _, 'if'}, false) -> error(if_clause);
no_clause({_, _, {'case', Term}}, false) -> error({case_clause, Term});
no_clause({_, _, {'try', Term}}, false) -> error({try_clause, Term});
no_clause({File, Line, {function, {Module, Name, Args}}}, false) ->
    {current_stacktrace, [_ | Trace]} = process_info(self(), current_stacktrace),
    Callers = lists:dropwhile(fun({M, _, _, _}) -> M =:= ?MODULE end, Trace),
    erlang:raise(error, function_clause, [{Module, Name, Args, [{file, File}, {line, Line}]} | Callers]).

default({_, _, 'if'}) -> "true -> ...";
default({_, _, {function, _}}) -> "f(X) -> ...";
default(_) -> "_ -> ...".

-spec fail(site(), atom(), iolist()) -> no_return().
fail({File, Line, What}, Code, Text) ->
    tessera_error:raise('cond', [], Code, "cond: the ~s at ~ts:~b: ~ts", [what(What), File, Line, Text]).

what('if') -> "`if'";
what({'case', _}) -> "`case'";
what({'try', _}) -> "`try'";
what({function, {_, Name, Args}}) -> ["clauses of ", name(Name), $/, integer_to_list(length(Args))];
what(filter) -> "filter of a comprehension";
what('?=') -> "`?='".

name(Name) ->
    case atom_to_list(Name) of
        "-" ++ _ -> "fun";
        Text -> Text
    end.

%% Whether a term equals the number, truth or other term of a pattern.
-spec match(term(), term()) -> boolean() | tessera_type:tensor().
match(Term, Expected) -> equal('=:=', Term, Expected).

%% The same if all but one of two truths have been tested before.
-spec other(term(), boolean()) -> boolean().
other(#tessera{}, _) -> true;
other(Term, Expected) -> Term =:= Expected.

%% A test in a guard: false if it fails; errors of the API are raised.
-spec guard(fun(() -> term())) -> boolean() | tessera_type:tensor().
guard(Test) ->
    try Test() of
        true -> true;
        #tessera{} = Tensor -> Tensor;
        _ -> false
    catch error:Reason:Trace ->
        case Trace of
            [{tessera, _, _, _} | _] -> erlang:raise(error, Reason, Trace);
            _ -> false
        end
    end.

%% A filter, which determines the length of a list.
-spec filter(term(), site()) -> term().
filter(#tessera{} = Tensor, Site) ->
    is_single(Tensor) orelse fail(Site, invalid_argument, not_single(Tensor)),
    plain(Tensor, Site),
    tessera_array:to_number(Tensor) /= 0;
filter(Term, _) -> Term.

%% A term that Erlang itself must inspect: it must not be a tensor of a traced
%% function.
-spec plain(term(), site()) -> term().
plain(#tessera{} = Tensor, Site) ->
    tessera_trace:is_tracing() andalso
        fail(Site, failed_precondition,
             ["a value that is traced, ", tessera_error:show(Tensor), ", cannot decide here. Write an `if' or a "
              "`case', or tessera:select/3"]),
    Tensor;
plain(Term, _) -> Term.
