%% @private The operands of functions of the API: tensors, traced values, templates and numbers.
-module(tessera_operand).
-include("tessera.hrl").
-include("../term/tessera_number.hrl").
-export([operand/2, contents/2, tensor/2, shape_of/1, shape_of/2, type_of/1, rank/2]).

%% The argument of the API function Name, which must be a tensor, a template or a number.
-spec operand(atom(), term()) -> tessera_type:operand().
operand(Name, #tessera{type = Type, shape = Shape} = Tensor) ->
    tessera_type:is_type(Type) andalso tessera_type:is_shape(Shape) orelse no_operand(Name, Tensor),
    Tensor;
operand(_, Number) when ?IS_REAL_NUMBER(Number); ?IS_COMPLEX_NUMBER(Number) -> Number;
operand(Name, Other) -> no_operand(Name, Other).

-spec no_operand(atom(), term()) -> no_return().
no_operand(Name, Other) ->
    Hint = case Other of
               [_ | _] -> "; tessera:tensor/1 makes a tensor of a list";
               _ -> ""
           end,
    tessera_error:raise(Name, [Other], invalid_argument,
                        "~s: expected a tensor or a number, got ~ts~s", [Name, tessera_error:show(Other), Hint]).

%% The same, but not a template.
-spec contents(atom(), term()) -> tessera_type:operand().
contents(Name, #tessera{ref = undefined} = Template) ->
    tessera_error:raise(Name, [], invalid_argument, "~s: expected a tensor or a number, got ~ts, which has no contents",
                        [Name, tessera_error:show(Template)]);
contents(Name, Operand) -> operand(Name, Operand).

%% A number as a tensor.
-spec tensor(atom(), tessera_type:operand()) -> tessera_type:tensor().
tensor(Name, Operand) ->
    case contents(Name, Operand) of
        #tessera{} = Tensor -> Tensor;
        Number ->
            case tessera_trace:is_tracing() of
                true -> tessera_trace:value(Name, Number);
                false -> tessera_memory:made(Name, [Number], fun() -> tessera_nif:from_list(Number, undefined) end)
            end
    end.

-spec shape_of(tessera_type:operand()) -> tessera_type:shape().
shape_of(#tessera{shape = Shape}) when is_tuple(Shape) -> Shape;
shape_of(_) -> {}.

-spec type_of(tessera_type:operand()) -> tessera_type:type().
type_of(#tessera{type = Type}) -> Type;
type_of(N) when is_number(N) -> tessera_tree:number_type(N);
type_of(N) when ?IS_COMPLEX_NUMBER(N) -> c64;
type_of(_) -> f32.

%% The shape of an argument of the function called Name.
-spec shape_of(atom(), term()) -> tessera_type:shape().
shape_of(Name, Operand) -> shape_of(contents(Name, Operand)).

-spec rank(atom(), tessera_type:operand()) -> non_neg_integer().
rank(Name, Operand) -> tuple_size(shape_of(Name, Operand)).
