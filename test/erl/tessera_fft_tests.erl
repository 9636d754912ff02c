%% Fourier transforms: the sums that define them, values of NumPy, lengths and axes, types, there and back; refused
%% arguments; gradients against differences; many processes; a caller that is killed.
-module(tessera_fft_tests).
-include_lib("eunit/include/eunit.hrl").
-import(tessera_test, [raises/3, near/3, check_gradient/2]).

t(List) -> tessera:tensor(List).

%% Numbers as a list of parts, for near/3.
parts(List) when is_list(List) -> lists:append([parts(X) || X <- List]);
parts({complex, Re, Im}) -> [Re, Im];
parts({Re, Im}) -> [Re, Im];
parts(X) -> [float(X)].

%% At once and compiled.
gives(Expected, F, Args, Tolerance) ->
    [near(parts(Expected), parts(tessera:to_list(apply(G, Args))), Tolerance) || G <- [F, tessera:jit(F)]].

%% ---- values

definition(Sign, Line) ->
    N = length(Line),
    Indexed = lists:zip(lists:seq(0, N - 1), Line),
    [lists:foldl(fun({I, {complex, Re, Im}}, {complex, A, B}) ->
                         Angle = Sign * 2 * math:pi() * ((I * K) rem N) / N,
                         {C, S} = {math:cos(Angle), math:sin(Angle)},
                         {complex, A + Re * C - Im * S, B + Re * S + Im * C}
                 end, {complex, 0.0, 0.0}, Indexed) || K <- lists:seq(0, N - 1)].

definition_test_() ->
    [?_test(begin
                Line = [{complex, math:sin(I * 1.7), math:cos(I * I * 0.3)} || I <- lists:seq(1, N)],
                Reals = [{complex, Re, 0.0} || {complex, Re, _} <- Line],
                X = tessera:tensor(Line, c128),
                R = tessera:real(X),
                Forward = definition(-1, Reals),
                gives(definition(-1, Line), fun tessera:fft/1, [X], 1.0e-11),
                gives([{complex, Re / N, Im / N} || {complex, Re, Im} <- definition(1, Line)], fun tessera:ifft/1, [X], 1.0e-11),
                gives(Forward, fun tessera:fft/1, [R], 1.0e-11),
                gives(lists:sublist(Forward, N div 2 + 1), fun tessera:rfft/1, [R], 1.0e-11),
                gives([Re || {complex, Re, _} <- Reals], fun(H) -> tessera:irfft(H, #{length => N}) end,
                      [tessera:rfft(R)], 1.0e-11)
            end) || N <- [1, 2, 3, 7, 8, 17, 30, 64, 77, 101, 144, 360]].

%% numpy.fft
numpy_test_() ->
    X = t([3, -1, 4, 1, -5, 9, 2, -6, 5, 3, -5]),
    H = t([{complex, 1, 2}, {complex, 3, -1}, {complex, -2, 0.5}, {complex, 4, 4}]),
    [{Name, ?_test(gives(Expected, F, Args, 1.0e-5))}
     || {Name, Expected, F, Args} <-
            [{"fft",
              [{10.000000000, 0.000000000}, {-3.344459772, -1.840786970}, {0.985779025, -0.746900619},
               {-16.827328642, -13.146969030}, {26.104469586, 6.215077825}, {4.581539804, -3.582409210},
               {4.581539804, 3.582409210}, {26.104469586, -6.215077825}, {-16.827328642, 13.146969030},
               {0.985779025, 0.746900619}, {-3.344459772, 1.840786970}],
              fun tessera:fft/1, [X]},
             {"rfft, padded",
              [{10.000000000, 0.000000000}, {2.828327510, -8.343565434}, {1.299671103, 3.300350094},
               {1.228400623, -1.638637005}, {8.892078373, -9.143606471}, {-25.357381207, 7.319996299},
               {24.378584596, 16.504531348}, {4.846513955, -7.094755946}, {2.383805046, -4.704728666}],
              fun(A) -> tessera:rfft(A, #{length => 17}) end, [X]},
             {"irfft, odd and padded",
              [1.222222222, -0.636195757, 1.150717571, 1.177564023, -1.922634315, -0.677884240, 0.600213754,
               -0.750571005, 0.836567746],
              fun(A) -> tessera:irfft(A, #{length => 9}) end, [H]},
             {"irfft",
              [1.166666667, 0.477670901, 1.099679369, -2.166666667, 0.233653965, 0.188995766],
              fun tessera:irfft/1, [H]},
             {"ifft, padded",
              [{1.200000000, 1.100000000}, {0.663464379, -0.524627087}, {-0.709985910, 2.333857665},
               {0.386379112, -0.654020277}, {-0.539857581, -0.255210301}],
              fun(A) -> tessera:ifft(A, #{length => 5}) end, [H]},
             {"fft2",
              [[{15.000000000, 0.000000000}, {-4.000000000, -5.000000000}, {5.000000000, 0.000000000},
               {-4.000000000, 5.000000000}],
               [{-3.000000000, -10.392304845}, {-4.464101615, 2.732050808}, {-1.000000000, -3.464101615},
               {2.464101615, 0.732050808}],
               [{-3.000000000, 10.392304845}, {2.464101615, -0.732050808}, {-1.000000000, 3.464101615},
               {-4.464101615, -2.732050808}]],
              fun(A) -> tessera:fft2(A, #{lengths => [3, 4]}) end, [tessera:iota({2, 3})]}]].

%% ---- shapes and types

shapes_test_() ->
    X = tessera:iota({3, 4, 5}, f32),
    [?_assertEqual({Type, Shape}, form(F))
     || {Type, Shape, F} <-
            [{c64, {3, 4, 5}, fun() -> tessera:fft(X) end},
             {c64, {3, 9, 5}, fun() -> tessera:fft(X, #{axis => 1, length => 9}) end},
             {c64, {2, 4, 5}, fun() -> tessera:ifft(X, #{axis => 0, length => 2}) end},
             {c64, {3, 4, 8}, fun() -> tessera:fft(X, #{length => power_of_two}) end},
             {c64, {3, 4, 3}, fun() -> tessera:rfft(X) end},
             {c64, {3, 5, 5}, fun() -> tessera:rfft(X, #{axis => -2, length => 8}) end},
             {f32, {3, 4, 8}, fun() -> tessera:irfft(X) end},
             {f32, {3, 4, 7}, fun() -> tessera:irfft(X, #{length => 7}) end},
             {c64, {3, 4, 5}, fun() -> tessera:fft2(X) end},
             {c64, {6, 4, 2}, fun() -> tessera:fft2(X, #{axes => [0, 2], lengths => [6, 2]}) end},
             {c64, {6, 4, 2}, fun() -> tessera:ifft2(X, #{axes => [2, 0], lengths => [2, 6]}) end},
             {c64, {3, 4, 5}, fun() -> tessera:fftn(X) end},
             {c64, {3, 8, 5}, fun() -> tessera:ifftn(X, #{axes => [1], lengths => [8]}) end},
             {c64, {0, 4}, fun() -> tessera:fft(tessera:zeros({0, 4})) end},
             {c64, {2, 4}, fun() -> tessera:fft(tessera:zeros({2, 0}), #{length => 4}) end},
             {c128, {4}, fun() -> tessera:fft(tessera:iota({4}, f64)) end},
             {c64, {4}, fun() -> tessera:fft(tessera:iota({4}, f16)) end},
             {c64, {4}, fun() -> tessera:ifft(tessera:iota({4}, u8)) end},
             {c128, {4}, fun() -> tessera:ifft(tessera:as_type(tessera:iota({4}), c128)) end},
             {f64, {6}, fun() -> tessera:irfft(tessera:as_type(tessera:iota({4}), c128)) end}]].

form(F) ->
    T = F(),
    {tessera:type(T), tessera:shape(T)}.

%% Along each axis as along the last one of the transposed tensor, there and back, of shapes around the widths of vectors.
axes_test_() ->
    [?_test(begin
                Z = noise({A, N, B}),
                Along = tessera:fft(Z, #{axis => 1}),
                Last = tessera:transpose(tessera:fft(tessera:transpose(Z, [0, 2, 1])), [0, 2, 1]),
                near(parts(tessera:to_list(Last)), parts(tessera:to_list(Along)), 1.0e-12),
                near(parts(tessera:to_list(Z)), parts(tessera:to_list(tessera:ifft(Along, #{axis => 1}))), 1.0e-12)
            end) || {A, N, B} <- [{1, 12, 1}, {2, 13, 3}, {3, 64, 9}, {1, 35, 40}, {2, 23, 17}, {20, 300, 1}]].

noise(Shape) ->
    tessera:complex(tessera:sin(tessera:multiply(tessera:iota(Shape, f64), 12.9898)),
                    tessera:cos(tessera:multiply(tessera:iota(Shape, f64), 78.233))).

%% ---- errors

refused_test_() ->
    [?_test(raises(invalid_argument, Words, F))
     || {Words, F} <-
            [{"no axis -1", fun() -> tessera:fft(1.0) end},
             {"no axis 2", fun() -> tessera:fft(tessera:ones({2, 2}), #{axis => 2}) end},
             {"length is 0, expected an integer", fun() -> tessera:fft(tessera:ones({2}), #{length => 0}) end},
             {"length is 2147483648", fun() -> tessera:fft(tessera:ones({2}), #{length => 2147483648}) end},
             {"length is 2.0", fun() -> tessera:fft(tessera:ones({2}), #{length => 2.0}) end},
             {"an axis of size 0", fun() -> tessera:fft(tessera:ones({2, 0})) end},
             {"an axis of size 1 has no length", fun() -> tessera:irfft(tessera:ones({1})) end},
             {"expected real numbers, got c64", fun() -> tessera:rfft(t([{complex, 1, 2}])) end},
             {"unknown options", fun() -> tessera:fft(tessera:ones({2}), #{size => 2}) end},
             {"expected 2 axes", fun() -> tessera:fft2(tessera:ones({2, 2}), #{axes => [0]}) end},
             {"an axis is there twice", fun() -> tessera:fftn(tessera:ones({2, 2}), #{axes => [0, -2]}) end},
             {"expected a list of 2", fun() -> tessera:fft2(tessera:ones({2, 2}), #{lengths => [2]}) end}]] ++
        [fun() -> tessera_eunit:on_host(fun() ->
             raises(resource_exhausted, "at most 67108864", fun() -> tessera:fft(tessera:ones({2}), #{length => 1000000000}) end)
         end) end]. % a plugin computes it, which may take minutes and 16 GB

%% ---- gradients

gradients_test_() ->
    X = tessera:sin(tessera:multiply(tessera:iota({2, 5}, f64), 1.3)),
    Both = fun(Z) -> tessera:concatenate([tessera:real(Z), tessera:imag(Z)], 0) end,
    Complex = fun(T) ->
                      tessera:complex(tessera:slice(T, [0, 0], [1, 5]), tessera:slice(T, [1, 0], [1, 5]))
              end,
    [{Name, ?_test(check_gradient(F, X))}
     || {Name, F} <-
            [{"fft", fun(T) -> Both(tessera:fft(T)) end},
             {"fft, padded", fun(T) -> Both(tessera:fft(T, #{length => 7})) end},
             {"fft, cut", fun(T) -> Both(tessera:fft(T, #{length => 3})) end},
             {"fft of complex numbers", fun(T) -> Both(tessera:fft(Complex(T))) end},
             {"ifft of complex numbers", fun(T) -> Both(tessera:ifft(Complex(T), #{length => 6})) end},
             {"ifft along axis 0", fun(T) -> Both(tessera:ifft(T, #{axis => 0})) end},
             {"rfft", fun(T) -> Both(tessera:rfft(T)) end},
             {"rfft, even", fun(T) -> Both(tessera:rfft(T, #{length => 8})) end},
             {"irfft", fun(T) -> tessera:irfft(Complex(T)) end},
             {"irfft, odd", fun(T) -> tessera:irfft(Complex(T), #{length => 7}) end},
             {"irfft, padded", fun(T) -> tessera:irfft(Complex(T), #{length => 13}) end},
             {"fft2", fun(T) -> Both(tessera:fft2(T)) end},
             {"multiplied", fun(T) ->
                                    Z = tessera:fft(T),
                                    Both(tessera:ifft(tessera:multiply(Z, Z)))
                            end}]].

%% The inverse of real numbers has no -0.0 as imaginary part: it prints like the forward transform.
no_negative_zeros_test_() ->
    [?_assertEqual(binary:copy(<<0>>, N * tessera_type:bits(Type) div 8),
                   tessera:to_binary(tessera:at(tessera:imag(tessera:ifft(tessera:full({3, N}, 1, Type), #{axis => 1})), [0])))
     || Type <- [f32, f64], N <- [1, 2, 4, 16]].

%% ---- processes

same_bits_test() ->
    X = noise({40, 1000}),
    Expected = tessera:to_binary(tessera:fft(X)),
    Pids = [spawn_monitor(fun() -> exit(tessera:to_binary(tessera:fft(X)) =:= Expected) end) || _ <- lists:seq(1, 200)],
    [receive {'DOWN', Ref, process, Pid, Reason} -> ?assertEqual(true, Reason) end || {Pid, Ref} <- Pids].

killed_test_() ->
    {timeout, 60, fun() ->
        X = tessera:ones({2000, 2003}),
        Small = tessera:to_binary(tessera:fft(t([1, 2, 3]))),
        [begin
             {Pid, Ref} = spawn_monitor(fun() -> tessera:fft(X) end),
             timer:sleep(5),
             exit(Pid, kill),
             receive {'DOWN', Ref, process, Pid, _} -> ok end,
             ?assertEqual(Small, tessera:to_binary(tessera:fft(t([1, 2, 3]))))
         end || _ <- lists:seq(1, 3)]
    end}.
