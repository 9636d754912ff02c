%% @private Text in XML and SVG.
-module(tessera_xml).
-export([escape/1]).

%% Control characters become spaces, since XML has no control characters.
-spec escape(unicode:chardata()) -> iolist().
escape(Text) -> [case C of $< -> "&lt;"; $> -> "&gt;"; $& -> "&amp;"; $" -> "&quot;"; _ when C < 32 -> " "; _ -> C end || C <- unicode:characters_to_list(Text)].
