%% @private The credentials of a start of a cluster's ranks, in files for their owner alone: the key of the proofs; and for encrypted
%% connections a certificate with its private key. Driver and ranks share both. It is TLS 1.3, and both sides accept that certificate and no
%% other: there are no authorities, no names and no dates to be checked.
-module(tessera_cluster_tls).
-export([available/0, new/2, read/1, remove/1, options/2, certificate/0]).
-export_type([identity/0, credentials/0]).

%% A certificate in DER, and the file with it and its private key. Only ssl reads the private key: the memory of Tessera's processes, or
%% arguments of ssl's processes, could be printed in a log.
-opaque identity() :: {Certificate :: binary(), file:filename_all()}.
-type credentials() :: {tessera_cluster_wire:key(), none | identity()}.

%% ASN.1's tags.
-define(INTEGER, 2).
-define(BIT_STRING, 3).
-define(OCTET_STRING, 4).
-define(OBJECT, 6).
-define(UTF8_STRING, 12).
-define(UTC_TIME, 23).
-define(GENERALIZED_TIME, 24).
-define(SEQUENCE, 48).
-define(SET, 49).
-define(FIELD(N), (160 + N)).

%% Starts OTP's ssl, or names the missing package.
-spec available() -> ok | {error, iodata()}.
available() ->
    Missing = [Package || {Module, Package} <- [{public_key, "erlang-public-key"}, {ssl, "erlang-ssl"}], code:ensure_loaded(Module) =/= {module, Module}],
    case Missing =:= [] andalso application:ensure_all_started(ssl) of
        {ok, _} -> ok;
        false -> {error, ["Erlang's applications ssl and public_key, of Debian's packages erlang-ssl and erlang-public-key; not here: ",
                          lists:join(", ", Missing)]};
        {error, Reason} -> {error, io_lib:format("Erlang's application ssl, which does not start: ~0tP", [Reason, 20])}
    end.

%% ---- the files

%% New credentials, and the contents of their files: a file with the key and, if any, the certificate; and a file with the certificate and
%% its private key.
-spec new(file:filename_all(), boolean()) -> {credentials(), [{file:filename_all(), binary()}]}.
new(KeyFile, Tls) ->
    Key = tessera_cluster_wire:key(),
    case Tls of
        false -> {{Key, none}, [{KeyFile, Key()}]};
        true ->
            {Certificate, PrivateKey} = certificate(),
            Pem = public_key:pem_encode([{'Certificate', Certificate, not_encrypted}, {'ECPrivateKey', PrivateKey, not_encrypted}]),
            {{Key, {Certificate, pem_file(KeyFile)}}, [{KeyFile, <<(Key())/binary, Certificate/binary>>}, {pem_file(KeyFile), Pem}]}
    end.

-spec read(file:filename_all()) -> {ok, credentials()} | {error, iodata()}.
read(KeyFile) ->
    case file:read_file(KeyFile) of
        {ok, <<Key:32/binary>>} -> {ok, {tessera_cluster_wire:hidden(Key), none}};
        {ok, <<Key:32/binary, Certificate/binary>>} -> {ok, {tessera_cluster_wire:hidden(Key), {Certificate, pem_file(KeyFile)}}};
        {ok, _} -> {error, io_lib:format("the file ~ts has no key", [KeyFile])};
        {error, Reason} -> {error, io_lib:format("cannot read the key's file ~ts: ~ts", [KeyFile, file:format_error(Reason)])}
    end.

-spec remove(file:filename_all()) -> ok.
remove(KeyFile) ->
    _ = [file:delete(File) || File <- [KeyFile, pem_file(KeyFile)]],
    ok.

pem_file(KeyFile) -> filename:join(filename:dirname(KeyFile), "tls.pem").

%% ---- TLS

%% Both sides prove that they have the private key.
-spec options(client | server, identity()) -> [ssl:tls_option()].
options(Role, {Certificate, File}) ->
    Pinned = public_key:pkix_decode_cert(Certificate, otp),
    Common = [{versions, ['tlsv1.3']}, {certfile, File}, {keyfile, File}, {cacerts, [Certificate]},
              {verify, verify_peer}, {verify_fun, {fun verify/3, Pinned}},
              {log_level, none}],   % the log is not a stranger's to fill
    case Role of
        server -> [{fail_if_no_peer_cert, true} | Common];
        client -> [{server_name_indication, disable} | Common]
    end.

%% Any certificate but the shared one is refused.
verify(_, {extension, _}, Pinned) -> {unknown, Pinned};
verify(Pinned, _, Pinned) -> {valid, Pinned};
verify(_, _, _) -> {fail, bad_certificate}.

%% ---- the certificate: X.509, signed with its own key, on the curve P-256

%% A new one and its private key, both in DER.
-spec certificate() -> {binary(), binary()}.
certificate() ->
    {Point, Short} = crypto:generate_key(ecdh, secp256r1),
    Scalar = <<(binary:decode_unsigned(Short)):256>>,
    <<Serial:126, _:2>> = crypto:strong_rand_bytes(16),
    Algorithm = der(?SEQUENCE, [object([1, 2, 840, 10045, 4, 3, 2])]),                        % ecdsa-with-SHA256
    Curve = object([1, 2, 840, 10045, 3, 1, 7]),                                            % secp256r1
    Name = der(?SEQUENCE, [der(?SET, [der(?SEQUENCE, [object([2, 5, 4, 3]), der(?UTF8_STRING, <<"tessera cluster">>)])])]),
    Always = der(?SEQUENCE, [der(?UTC_TIME, <<"700101000000Z">>), der(?GENERALIZED_TIME, <<"99991231235959Z">>)]),
    PublicKey = der(?SEQUENCE, [der(?SEQUENCE, [object([1, 2, 840, 10045, 2, 1]), Curve]), bits(Point)]),
    Body = der(?SEQUENCE, [der(?FIELD(0), integer(2)), integer(Serial + 1), Algorithm, Name, Always, Name, PublicKey,
                           der(?FIELD(3), der(?SEQUENCE, [key_usage()]))]),
    Signature = crypto:sign(ecdsa, sha256, Body, [Scalar, secp256r1]),
    PrivateKey = der(?SEQUENCE, [integer(1), der(?OCTET_STRING, Scalar), der(?FIELD(0), Curve), der(?FIELD(1), bits(Point))]),
    {iolist_to_binary(der(?SEQUENCE, [Body, Algorithm, bits(Signature)])), iolist_to_binary(PrivateKey)}.

%% The key signs: the first bit of eight.
key_usage() -> der(?SEQUENCE, [object([2, 5, 29, 15]), der(?OCTET_STRING, der(?BIT_STRING, <<7, 128>>))]).

bits(Bytes) -> der(?BIT_STRING, [0, Bytes]).

%% Not negative: the first bit is the sign.
integer(Number) ->
    case binary:encode_unsigned(Number) of
        <<0:1, _/bits>> = Bytes -> der(?INTEGER, Bytes);
        Bytes -> der(?INTEGER, [0, Bytes])
    end.

object([First, Second | Rest]) -> der(?OBJECT, [40 * First + Second | [base128(Number, []) || Number <- Rest]]).

%% All bytes but the last have their first bit set.
base128(Number, []) -> base128(Number bsr 7, [Number band 127]);
base128(0, Bytes) -> Bytes;
base128(Number, Bytes) -> base128(Number bsr 7, [128 + Number band 127 | Bytes]).

der(Tag, Content) ->
    Bytes = iolist_to_binary(Content),
    case byte_size(Bytes) of
        Size when Size < 128 -> <<Tag, Size, Bytes/binary>>;
        Size when Size < 256 -> <<Tag, 129, Size, Bytes/binary>>;
        Size when Size < 65536 -> <<Tag, 130, Size:16, Bytes/binary>>
    end.
