%% @private The output of mpirun and ranks while they start, and the part of it that an error quotes: lines of the rank that ended, or
%% mpirun's lines without the advice that its messages contain.
-module(tessera_cluster_output).
-export([new/0, parse/2, ended_rank/1, report_end/0, add/3, of_rank/2, of_launcher/1, has_message/1, is_harmless/1]).
-export_type([output/0, source/0]).

%% The source of a line: a rank, or the launcher (mpirun).
-type source() :: launcher | non_neg_integer().

%% This number of first lines is kept, and of last ones: ssh's message comes first, and the reason of an exception last.
-define(KEPT, 40).
%% How many lines an error quotes, and characters of a message of mpirun.
-define(LINES, 12).
-define(BLOCK, 400).

-record(output, {first = [] :: [{source(), binary()}], missing = ?KEPT :: non_neg_integer(), last = queue:new() :: queue:queue({source(), binary()}),
                 count = 0 :: non_neg_integer()}).
-opaque output() :: #output{}.

-spec new() -> output().
new() -> #output{}.

%% The parts of a line of mpirun, with their sources. mpirun puts a tag before the output of a rank (Open MPI 5 adds a space): also inside of a line
%% that was written in pieces, and after a line without end. Text before the first tag belongs to the given source.
-spec parse(source(), binary()) -> [{source(), binary()}, ...].
parse(Source, Line) ->
    [Before | Tagged] = re:split(Line, "\\[[^,\\[\\]]*,([0-9]+)\\]<std(?:out|err)>: ?"),
    case [{Source, Before} || Before =/= <<>> orelse Tagged =:= []] ++ tagged(Tagged) of
        [First | Rest] -> joined(First, Rest)
    end.

tagged([Rank, Text | Rest]) -> [{binary_to_integer(Rank), Text} | tagged(Rest)];
tagged([]) -> [].

joined({Source, Text}, [{Source, More} | Rest]) -> joined({Source, <<Text/binary, More/binary>>}, Rest);
joined(First, [Next | Rest]) -> [First | joined(Next, Rest)];
joined(Last, []) -> [Last].

%% The script that is run in the place of a rank's program, its arguments: it runs the program and says how that ended, unless that was well. So the
%% first rank that ended is known, with its host, also if the program was not there or was killed. Open MPI 4.1 refuses in a rank the variable that says
%% where mpirun keeps its files.
-spec report_end() -> string().
report_end() ->
    "unset OMPI_MCA_orte_local_tmpdir_base PRTE_MCA_prte_local_tmpdir_base; \"$@\"; s=$?; "
        "[ $s = 0 ] || echo \"tessera: this rank on $(uname -n) ended with status $s\"; exit $s".

%% The script's report: the host and the status.
-spec ended_rank(binary()) -> {Host :: binary(), Status :: non_neg_integer()} | none.
ended_rank(Line) ->
    case re:run(Line, "^tessera: this rank on (\\S+) ended with status ([0-9]+)$", [{capture, all_but_first, binary}]) of
        {match, [Host, Status]} -> {Host, binary_to_integer(Status)};
        nomatch -> none
    end.

%% A warning of mpirun that tells the caller nothing: its process and the child (ssh) both give the child a group of its own, and the child that has
%% done so and runs ssh already is refused (EACCES) to the other.
-spec is_harmless(binary()) -> boolean().
is_harmless(Line) -> re:run(Line, "plm:[rs]sh: Warning: setpgid\\([0-9]+,[0-9]+\\) failed in parent with errno=.*\\(13\\)\\s*$") =/= nomatch.

-spec add(source(), binary(), output()) -> output().
add(Source, Line, #output{missing = Missing, first = First} = Output) when Missing > 0 ->
    Output#output{first = [{Source, Line} | First], missing = Missing - 1};
add(Source, Line, #output{last = Last, count = Count} = Output) when Count < ?KEPT ->
    Output#output{last = queue:in({Source, Line}, Last), count = Count + 1};
add(Source, Line, #output{last = Last} = Output) -> Output#output{last = queue:in({Source, Line}, queue:drop(Last))}.

lines(#output{first = First, last = Last}) -> lists:reverse(First) ++ queue:to_list(Last).

%% The lines of a rank that an error quotes, after a colon.
-spec of_rank(non_neg_integer(), output()) -> iodata().
of_rank(Rank, Output) -> quoted(last([Line || {Source, Line} <- lines(Output), Source =:= Rank, ended_rank(Line) =:= none, is_said(Line)])).

%% The same for the launcher: lines outside of mpirun's messages, such as ssh's, then these messages; else the ranks' lines.
-spec of_launcher(output()) -> iodata().
of_launcher(Output) ->
    All = lines(Output),
    {Plain, Blocks} = blocks([Line || {launcher, Line} <- All], [], []),
    case last([Line || Line <- Plain, is_said(Line)]) ++ [Text || Block <- Blocks, Text <- [message(Block)], Text =/= ""] of
        [] -> quoted(last([["rank ", integer_to_list(Rank), ": ", Line] || {Rank, Line} <- All, is_integer(Rank), is_said(Line)]));
        Said -> quoted(Said)
    end.

%% Whether mpirun has printed a message of its own, as it does before it ends.
-spec has_message(output()) -> boolean().
has_message(Output) ->
    {_, Blocks} = blocks([Line || {launcher, Line} <- lines(Output)], [], []),
    Blocks =/= [].

last(Lines) -> lists:nthtail(max(0, length(Lines) - ?LINES), Lines).

quoted([]) -> "";
quoted(Lines) -> [": " | lists:join("; ", Lines)].

is_said(Line) -> re:run(Line, "^\\s*$") =:= nomatch.

%% Lines between two rules are a message of mpirun.
blocks([Line | Lines], Plain, Blocks) ->
    case is_rule(Line) of
        true ->
            {Block, Rest} = lists:splitwith(fun(Next) -> not is_rule(Next) end, Lines),
            blocks(case Rest of [_ | After] -> After; [] -> [] end, Plain, [Block | Blocks]);
        false -> blocks(Lines, [Line | Plain], Blocks)
    end;
blocks([], Plain, Blocks) -> {lists:reverse(Plain), lists:reverse(Blocks)}.

is_rule(Line) -> re:run(Line, "^-{20,}\\s*$") =/= nomatch.

%% The facts of a message: advice begins where it describes usual causes. That a job was aborted since a process ended is known.
message(Block) ->
    Facts = lists:takewhile(fun(Line) -> re:run(Line, "^(This|It) (is|may|usually|might)\\b.*(caused|due|usually)|^Please |^\\s*\\* ") =:= nomatch end, Block),
    Text = lists:join(" ", [string:trim(Line) || Line <- Facts, is_said(Line)]),
    case re:run(Text, "^Primary job +terminated normally") of
        nomatch -> string:slice(unicode:characters_to_list(Text), 0, ?BLOCK);
        _ -> ""
    end.
