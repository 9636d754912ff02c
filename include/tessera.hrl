%% A tensor, for those who match on it. `ref' is the handle of its memory, or
%% [Program | Value] while a function is traced, or `undefined' in a template.
-record(tessera, {ref   :: reference() | nonempty_improper_list(reference(), non_neg_integer()) | undefined,
                  type  :: tessera:type(),
                  shape :: tessera:shape()}).
