%% Calls with a misspelt option, one in each function. Dialyzer must complain of each: mk/lint-erl.sh counts. A function per type of
%% options. They are never run.
-module(misspelt_options).
-export([iota/0, concatenate/1, transpose/1, dot/2, quantize/1, take/2, gather/2, sum/1, variance/1, quantile/1, argmax/1, sort/1, argsort/1, top_k/1, unique/1, cumulative_sum/1, conv/2,
         window_sum/1, window_scatter_max/2, triangular_solve/2, qr/1, norm/1, fft/1, fftn/1, jit/1, compile/1, shard_jit/1, shard_map/1,
         open_client/0, normal/1, categorical/2, shuffle/2, choice/1, load/0, save/1, read_csv/0, start_link/0, join/0,
         inner_sum/1, inner_norm/1, inner_fft/1, inner_top_k/1, inner_mean/1, stablehlo_shard_jit/1]).

iota() -> tessera:iota({2, 3}, #{axs => 1}).
concatenate(Xs) -> tessera:concatenate(Xs, #{aixs => 1}).
transpose(X) -> tessera:transpose(X, #{order => [1, 0]}).
dot(A, B) -> tessera:dot(A, B, #{batch => {[0], [0]}}).
quantize(W) -> tessera:quantize(W, #{bit => 4}).
take(X, I) -> tessera:take(X, I, #{axsi => 1}).
gather(X, I) -> tessera:gather(X, I, #{axess => [0]}).
sum(X) -> tessera:sum(X, #{axes => [0], keep_axe => true}).
variance(X) -> tessera:variance(X, #{ddoff => 1}).
quantile(X) -> tessera:quantile(X, 0.5, #{methods => lower}).
argmax(X) -> tessera:argmax(X, #{tie_brake => low}).
sort(X) -> tessera:sort(X, #{descend => true}).
argsort(X) -> tessera:argsort(X, #{typ => s64}).
top_k(X) -> tessera:top_k(X, 1, #{ax => 0}).
unique(X) -> tessera:unique(X, #{sizes => 3}).
cumulative_sum(X) -> tessera:cumulative_sum(X, #{reversed => true}).
conv(X, K) -> tessera:conv(X, K, #{stride => 2}).
window_sum(X) -> tessera:window_sum(X, {2}, #{stride => 2}).
window_scatter_max(X, S) -> tessera:window_scatter_max(X, S, 0, {2}, #{dilation => 2}).
triangular_solve(A, B) -> tessera:triangular_solve(A, B, #{upper => true}).
qr(A) -> tessera:qr(A, #{fulll => true}).
norm(A) -> tessera:norm(A, #{ord => 1}).
fft(X) -> tessera:fft(X, #{lengths => 8}).
fftn(X) -> tessera:fftn(X, #{length => 8}).
jit(F) -> tessera:jit(F, #{thread => 1}).
compile(F) -> tessera:compile(F, [], #{donates => [1]}).
shard_jit(F) -> tessera:shard_jit(F, #{shape => {1}}, #{inputs_shardings => []}).
shard_map(F) -> tessera:shard_map(F, #{shape => {1}}, [], #{}, #{clients => host}).
open_client() -> tessera:open_client(small, #{devices => 2}).
normal(Key) -> tessera_random:normal(Key, #{shapes => {2}}).
categorical(Key, Logits) -> tessera_random:categorical(Key, Logits, #{type => s32}).
shuffle(Key, X) -> tessera_random:shuffle(Key, X, #{independant => true}).
choice(Key) -> tessera_random:choice(Key, 6, #{sample => 2}).
load() -> tessera_io:load("x.npy", #{mapped => true}).
save(X) -> tessera_io:save("x.npy", X, #{formats => npy}).
read_csv() -> tessera_io:read_csv("x.csv", #{headers => false}).
start_link() -> tessera_cluster:start_link(#{ranks => 2, device => 1}).
join() -> tessera_cluster:join(#{timeout => 1000}).
inner_sum(X) -> tessera_ops:sum(X, #{keep_axe => true}).
inner_norm(A) -> tessera_linalg:norm(A, #{ord => 1}).
inner_fft(X) -> tessera_fft:fft(X, #{lengths => 8}).
inner_top_k(X) -> tessera_order:top_k(X, 1, #{ax => 0}).
inner_mean(X) -> tessera_windows:mean(X, {2}, #{stride => 2}).
stablehlo_shard_jit(Text) -> tessera_stablehlo:shard_jit(Text, #{shape => {1}}, #{thread => 1}).
