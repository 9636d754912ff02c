%% @private Errors that Erlang raises in traced functions: if they are about a tensor, they become errors of the API,
%% which give the location and what to write instead. Other errors stay as they are.
-module(tessera_traced_error).
-include("tessera.hrl").
-export([raise/5]).

%% Limit for the parts of a term that are searched for tensors.
-define(PARTS, 1000).

%% Raises the error of a function F that was called with Args while it was traced, for the API function Name.
-spec raise(atom(), function(), [term()], term(), erlang:stacktrace()) -> no_return().
raise(_, F, _, {Code, Message} = Reason, [{_, User, _, [{error_info, #{module := tessera_error}}]} | _] = Trace) when is_atom(Code), is_binary(Message) ->
    case tessera_error:stack(Trace) of
        [] -> erlang:raise(error, Reason, Trace);
        Stack ->
            case origin(Stack, F, User) of
                {at, Place} -> tessera_error:located([", at ", Place], Reason, Trace);
                {search, Callers} -> tessera_error:again(Callers, Reason, Trace)
            end
    end;
raise(Name, F, Args, Reason, Trace) ->
    case is_of_user(Trace) andalso explain(Reason, Trace, F, Args) of
        {Code, Text} ->
            Message = unicode:characters_to_binary([atom_to_list(Name), ": ", Text]),
            tessera_error:raise(Name, [], #{code => Code, message => Message}, Trace);
        _ -> erlang:raise(error, Reason, Trace)
    end.

%% ---- the line of an error of the API

%% The line of the nearest frame of the user's code, or of the function's last call. A function of Tessera's own has no such line: its callers are
%% searched, here and by the functions outside.
origin(Stack, F, User) ->
    Ours = maps:from_keys(tessera_tails:modules(), true),
    IsHidden = fun(Module) -> is_map_key(Module, Ours) orelse not is_user(Module) end,
    case {tessera_stack:nearest(Stack, IsHidden), tessera_tails:is_hidden(F, IsHidden)} of
        {{frame, Line}, _} -> place_of(Line);
        {_, true} -> of_callers(IsHidden);
        {{traced, _}, false} -> place_of(tessera_tails:of_end(F, User));
        {none, false} -> {search, []}
    end.

%% The error's own stack may be too short for them.
of_callers(IsHidden) ->
    Deep = tessera_stack:deepen(),
    {current_stacktrace, Callers} = process_info(self(), current_stacktrace),
    ok = tessera_stack:restore(Deep),
    case tessera_stack:nearest(Callers, IsHidden) of
        {frame, Line} -> place_of(Line);
        _ -> {search, Callers}
    end.

place_of({_, _, _, [_ | _] = File, Line}) -> {at, [File, $:, integer_to_list(Line)]};
place_of(_) -> {search, []}.

%% ---- the code and text of the API's error, or none

explain(badarith, [{erlang, Op, Args, _} | _] = Trace, _, _) when is_list(Args) -> in_call(erlang, Op, Args, Trace);
explain(badarith, Trace, F, Args) -> unsaid(arithmetic, Trace, F, Args);
explain(if_clause, Trace, F, Args) -> unsaid('if', Trace, F, Args);
explain(badarg, [{Module, Function, Args, _} | _] = Trace, _, _) when is_list(Args) ->
    in_call(Module, Function, Args, Trace);
explain(badarg, [{_, _, _, Location} | _] = Trace, _, _) -> in_binary(Location, Trace);
explain(function_clause, [{Module, Function, Args, _} | _] = Trace, _, _) when is_list(Args) ->
    no_clause(Module, Function, Args, Trace);
explain({badarg, Term}, Trace, _, _) -> in_term(Term, "a tensor where true or false is expected", Trace, branch());
explain({bad_filter, Term}, Trace, _, _) -> in_term(Term, "a tensor as filter of a comprehension", Trace, branch());
explain({bad_generator, Term}, Trace, _, _) ->
    in_term(Term, "a tensor as generator of a comprehension", Trace,
            "Write an op on the whole tensor, tessera:reduce/3, or tessera:split/2, which gives a list");
explain({case_clause, Term}, Trace, _, _) -> matching(Term, "no clause of a `case' matches", Trace);
explain({try_clause, Term}, Trace, _, _) -> matching(Term, "no clause of a `try' matches", Trace);
explain({else_clause, Term}, Trace, _, _) -> matching(Term, "no clause of an `else' matches", Trace);
explain({badmatch, Term}, Trace, _, _) -> matching(Term, "no match of the right side of `=',", Trace);
explain({badmap, Term}, Trace, _, _) -> in_term(Term, "a tensor where a map is expected", Trace, "");
explain({badrecord, Term}, Trace, _, _) -> in_term(Term, "a tensor where a record is expected", Trace, "");
explain({badfun, F}, _, _, _) when is_function(F) -> gone(F);
explain({badfun, Term}, Trace, _, _) -> in_term(Term, "a tensor where a function is expected", Trace, "");
explain({badarity, {Fun, Args}}, Trace, _, _) when is_function(Fun), is_list(Args) -> wrong_arity(Fun, Args, Trace);
explain(_, _, _, _) -> none.

%% Arithmetic and other built-in functions.
in_call(Module, Function, Args, Trace) ->
    {By, Instead} = case on_behalf(Trace) of
                        {Module, Function, _} -> {"", instead(Module, Function, length(Args))};
                        {M, F, Arity} -> {[" in ", function(M, F, Arity)], instead(M, F, Arity)}
                    end,
    What = case is_user(Module) of
               true -> ["badarg of the call ", called(Module, Function, Args)];
               false -> ["Erlang cannot compute ", called(Module, Function, Args)]
           end,
    about(Args, [What, By, place(Trace)], Instead).

%% The OTP function that was called by one outside of OTP.
on_behalf(Trace) ->
    {Module, Function, Args, _} = case lists:takewhile(fun({M, _, _, _}) -> is_otp(M) end, Trace) of
                                      [] -> hd(Trace);
                                      Frames -> lists:last(Frames)
                                  end,
    case Args of
        [_ | _] -> {Module, Function, length(Args)};
        _ -> {Module, Function, Args}
    end.

function(Module, Function, Arity) -> io_lib:format("~s:~s/~b", [Module, io_lib:write_atom(Function), Arity]).

no_clause(lists, seq, Args, Trace) ->
    about(Args, ["Erlang cannot compute ", called(lists, seq, Args), place(Trace)],
          "How many steps there are must be known when the function is traced: take the number from tessera:shape/1 or "
          "from the function's environment, or write tessera:iota/1 or tessera:while/3");
no_clause(Module, Function, Args, Trace) ->
    about(Args, ["no clause matches the call ", called(Module, Function, Args), place(Trace)],
          case {is_user(Module), tessera_names:instead(Module, Function, length(Args))} of
              {true, _} -> branch();
              {false, none} -> branch();
              {false, Instead} -> ["Write ", Instead]
          end).

in_term(Term, What, Trace, Instead) when is_record(Term, tessera) -> about([Term], [What, place(Trace)], Instead);
in_term(_, _, _, _) -> none.

matching(Term, What, Trace) -> about([Term], [What, " ", show(Term), place(Trace)], branch()).

in_binary(Location, Trace) ->
    case proplists:get_value(error_info, Location) of
        #{cause := Cause} -> about([Cause], ["a tensor in a binary that is constructed", place(Trace)],
                                   "Read tensors when the function has run");
        _ -> none
    end.

%% A function without code: it was purged.
gone(F) ->
    {module, Module} = erlang:fun_info(F, module),
    {failed_precondition, ["the code of a function of the module ", atom_to_binary(Module, utf8), " is gone: another version of the module was "
                           "loaded, and the old one purged. Make the function again, from the new version"]}.

wrong_arity(Fun, Args, Trace) ->
    {arity, Arity} = erlang:fun_info(Fun, arity),
    case tensors(Args) of
        [] -> none;
        _ -> {invalid_argument, ["a function of ", arguments(Arity), " is called with ", integer_to_list(length(Args)),
                                 ": (", shown(Args), ")", place(Trace)]}
    end.

arguments(1) -> "1 argument";
arguments(N) -> [integer_to_list(N), " arguments"].

%% Errors without the terms that they are about. The function's code may show whether there is a tensor.
unsaid(What, Trace, F, Args) ->
    case known_line(What, Trace, F, Args) of
        {no, _} -> none;
        {Certainty, Expr} ->
            {Text, Instead} = unsaid(What, Expr),
            {failed_precondition, sentences([Text, place(Trace), probably(Certainty)], traced(), Instead)}
    end.

probably(sure) -> "";
probably(unsure) -> ", probably because of a traced value".

unsaid('if', _) -> {"no guard of an `if' is true", branch()};
unsaid(arithmetic, none) -> {"Erlang cannot compute", ["Write tessera:add/2 for + and so on, ", transform()]};
unsaid(arithmetic, Expr) ->
    Operator = element(3, Expr),
    {["Erlang cannot compute ", tessera_flow:text(Expr)], instead(erlang, Operator, tuple_size(Expr) - 3)}.

known_line(What, Trace, F, Args) ->
    case {tessera_check:lines(F, Args), user_frame(Trace)} of
        {none, _} -> {unsure, none};
        {Lines, {_, _, _, [{file, File}, {line, Line} | _]}} -> maps:get({What, File, Line}, Lines, {unsure, none});
        {Lines, none} -> surest([Known || {{W, "", _}, Known} <- maps:to_list(Lines), W =:= What])
    end.

surest(Known) ->
    case [Found || Certainty <- [sure, unsure, no], {_, _} = Found <- [lists:keyfind(Certainty, 1, Known)]] of
        [Surest | _] -> Surest;
        [] -> {unsure, none}
    end.

about(Terms, Text, Instead) ->
    case tensors(Terms) of
        [] -> none;
        Tensors -> {code(Tensors), sentences(Text, why(Tensors), Instead)}
    end.

sentences(Text, Why, "") -> [Text, ". ", Why];
sentences(Text, Why, Instead) -> [Text, ". ", Why, $\s, Instead, $.].

%% ---- texts

%% Traced values have no contents yet; other tensors have contents, but Erlang cannot read them.
code(Tensors) ->
    case lists:any(fun is_traced/1, Tensors) of
        true -> failed_precondition;
        false -> invalid_argument
    end.

why(Tensors) ->
    case lists:any(fun is_traced/1, Tensors) of
        true -> traced();
        false -> "Erlang's arithmetic, patterns and guards do not see the contents of a tensor."
    end.

traced() ->
    "A traced value has no contents before the compiled function runs: Erlang's arithmetic, patterns and guards see "
    "none.".

branch() -> ["Write tessera:'cond'/3 or tessera:select/3 to choose by a value, ", transform()].

transform() -> "or compile the module with the parse transform tessera_transform (docs/tracing.md)".

instead(Module, Function, Arity) ->
    case tessera_names:instead(Module, Function, Arity) of
        none -> "Write functions of the module tessera, which take such values (docs/tracing.md)";
        Instead -> ["Write ", Instead, ", ", transform()]
    end.

called(erlang, Op, [A, B]) ->
    case erl_internal:arith_op(Op, 2) orelse erl_internal:bool_op(Op, 2) of
        true -> [show(A), $\s, atom_to_list(Op), $\s, show(B)];
        false -> call(["erlang:", atom_to_list(Op)], [A, B])
    end;
called(erlang, Op, [A]) when Op =:= '-'; Op =:= '+' -> [atom_to_list(Op), show(A)];
called(erlang, Op, [A]) when Op =:= 'not'; Op =:= 'bnot' -> [atom_to_list(Op), $\s, show(A)];
called(erl_eval, _, Args) -> call(["of the fun with "], Args);
called(Module, Function, Args) ->
    case re:run(atom_to_list(Function), "^-(.+)-fun-[0-9]*-*$", [{capture, all_but_first, list}, unicode]) of
        {match, [Outer]} -> call(["of the fun in ", atom_to_list(Module), $:, Outer, " with "], Args);
        nomatch -> call([atom_to_list(Module), $:, io_lib:write_atom(Function)], Args)
    end.

call(Name, Args) -> [Name, $(, shown(Args), $)].

shown(Terms) -> lists:join(", ", [show(Term) || Term <- Terms]).

show(Term) -> tessera_error:show(Term).

%% ---- locations

%% " at foo.erl:12", of the first frame of the user's.
place(Trace) ->
    case user_frame(Trace) of
        {_, _, _, [{file, File}, {line, Line} | _]} -> [" at ", File, $:, integer_to_list(Line)];
        _ -> ""
    end.

user_frame(Trace) ->
    case lists:dropwhile(fun({Module, _, _, _}) -> not is_user(Module) end, Trace) of
        [{Module, Function, Args, [{file, _}, {line, _} | _] = Location} | _] -> {Module, Function, Args, Location};
        _ -> none
    end.

%% An error in Tessera's own code is a bug and stays as it is. An interpreted function leaves no frame above its
%% call.
is_of_user(Trace) ->
    case lists:dropwhile(fun({Module, _, _, _}) -> is_otp(Module) end, Trace) of
        [{tessera_trace, call, _, _} | _] -> true;
        [{Module, _, _, _} | _] -> is_user(Module);
        [] -> true
    end.

is_user(Module) -> not is_otp(Module) andalso not tessera_error:is_ours(Module).

%% Modules with only built-in functions, such as math, need not be loaded.
is_otp(Module) -> not erlang:module_loaded(Module) orelse code:is_sticky(Module).

%% ---- tensors in terms

tensors(Terms) ->
    {Tensors, _} = tensors(Terms, {[], ?PARTS}),
    Tensors.

tensors(_, {_, 0} = Acc) -> Acc;
tensors(#tessera{ref = Ref} = Tensor, {Found, Left}) when Ref =/= undefined -> {[Tensor | Found], Left - 1};
tensors([Head | Tail], Acc) -> tensors(Tail, tensors(Head, Acc));
tensors(Tuple, {Found, Left}) when is_tuple(Tuple) -> tensors(tuple_to_list(Tuple), {Found, Left - 1});
tensors(Map, {Found, Left}) when is_map(Map) -> tensors(maps:values(Map), {Found, Left - 1});
tensors(_, {Found, Left}) -> {Found, Left - 1}.

is_traced(#tessera{ref = Ref}) -> not is_reference(Ref).
