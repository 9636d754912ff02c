%% What h of IEx prints. The compiler of OTP 27 and later keeps it in the module. Earlier ones do not know the attribute:
%% there an empty one takes its place that may stand before any function.
-if(?OTP_RELEASE >= 27).
-define(DOC(Text), -doc(Text)).
-define(MODULEDOC(Text), -moduledoc(Text)).
-define(INTERNAL, -doc(false)).
-else.
-define(DOC(Text), -dialyzer([])).
-define(MODULEDOC(Text), -dialyzer([])).
-define(INTERNAL, -dialyzer([])).
-endif.
