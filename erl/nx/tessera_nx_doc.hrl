%% What `h' prints in IEx. OTP 27 keeps it in the module; before, the compiler
%% knows no such attribute, and takes this one anywhere.
-if(?OTP_RELEASE >= 27).
-define(DOC(Text), -doc(Text)).
-define(MODULEDOC(Text), -moduledoc(Text)).
-else.
-define(DOC(Text), -dialyzer([])).
-define(MODULEDOC(Text), -dialyzer([])).
-endif.
