%% @private The names of the API's functions that correspond to operators and functions of Erlang.
-module(tessera_names).
-export([function/2, instead/3, math_function/2]).

%% The API function for tensors that corresponds to an operator or a built-in function of Erlang.
-spec function(atom(), arity()) -> atom().
function(Name, 2) ->
    case Name of
        '+' -> add;
        '-' -> subtract;
        '*' -> multiply;
        '/' -> divide;
        'div' -> quotient;
        'rem' -> remainder;
        'band' -> bitwise_and;
        'bor' -> bitwise_or;
        'bxor' -> bitwise_xor;
        'bsl' -> left_shift;
        'bsr' -> right_shift;
        '==' -> equal;
        '=:=' -> equal;
        '/=' -> not_equal;
        '=/=' -> not_equal;
        '<' -> less;
        '=<' -> less_equal;
        '>' -> greater;
        '>=' -> greater_equal;
        'and' -> logical_and;
        'or' -> logical_or;
        'xor' -> logical_xor;
        max -> max;
        min -> min;
        _ -> none
    end;
function(Name, 1) ->
    case Name of
        '-' -> negate;
        '+' -> tensor;
        'bnot' -> bitwise_not;
        'not' -> logical_not;
        _ -> same_name(Name, [abs, ceil, floor, round])
    end;
function(_, _) -> none.

same_name(Name, Names) ->
    case lists:member(Name, Names) of
        true -> Name;
        false -> none
    end.

%% The API function to name in an error instead of an Erlang function; none if there is no such function.
-spec instead(module(), atom(), arity()) -> string() | none.
instead(erlang, float, 1) -> "tessera:as_type/2";
instead(erlang, trunc, 1) -> "tessera:as_type/2";
instead(erlang, Name, Arity) -> written(function(Name, Arity), Arity);
instead(math, Name, Arity) -> written(math_function(Name, Arity), Arity);
instead(lists, sum, _) -> "tessera:sum/1 of one tensor, tessera:stack/1 makes one of several";
instead(_, _, _) -> none.

written(none, _) -> none;
written(Name, Arity) -> lists:flatten(io_lib:format("tessera:~p/~b", [Name, Arity])).

%% The API function that corresponds to one of the module math.
-spec math_function(atom(), arity()) -> atom().
math_function(fmod, 2) -> remainder;
math_function(Name, 2) -> same_name(Name, [pow, atan2]);
math_function(Name, 1) ->
    same_name(Name, [acos, acosh, asin, asinh, atan, atanh, ceil, cos, cosh, erf, erfc, exp, floor, log, sin, sinh,
                     sqrt, tan, tanh]);
math_function(_, _) -> none.
