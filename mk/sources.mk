# What is built, layer by layer. Each list may only include headers of its own
# layer and of those above it (see the table in mk/check-layers.sh).

BASE_SRC := \
  c_src/base/alloc.c \
  c_src/base/arena.c \
  c_src/base/cgroup.c \
  c_src/base/deep.c \
  c_src/base/file.c \
  c_src/base/log.c \
  c_src/base/map.c \
  c_src/base/mapped_file.c \
  c_src/base/regular_file.c \
  c_src/base/parallel.c \
  c_src/base/places.c \
  c_src/base/shared_object.c \
  c_src/base/slots.c \
  c_src/base/status.c \
  c_src/base/system.c \
  c_src/base/text.c \
  c_src/base/thread.c \
  c_src/base/vec.c

TENSOR_SRC := \
  c_src/tensor/blocks.c \
  c_src/tensor/buffer.c \
  c_src/tensor/dtype.c \
  c_src/tensor/half.c \
  c_src/tensor/mapping.c \
  c_src/tensor/pages.c \
  c_src/tensor/pool.c \
  c_src/tensor/prepared.c \
  c_src/tensor/scalar.c \
  c_src/tensor/shape.c

IR_SRC := \
  c_src/ir/attrs.c \
  c_src/ir/combiner.c \
  c_src/ir/copy.c \
  c_src/ir/graph.c \
  c_src/ir/infer.c \
  c_src/ir/infer_check.c \
  c_src/ir/infer_control.c \
  c_src/ir/infer_fft.c \
  c_src/ir/infer_linalg.c \
  c_src/ir/infer_mesh.c \
  c_src/ir/infer_shape.c \
  c_src/ir/infer_window.c \
  c_src/ir/intern.c \
  c_src/ir/key.c \
  c_src/ir/lex.c \
  c_src/ir/mesh.c \
  c_src/ir/op.c \
  c_src/ir/parse.c \
  c_src/ir/print.c \
  c_src/ir/stablehlo/stablehlo.c \
  c_src/ir/stablehlo/stablehlo_barrier.c \
  c_src/ir/stablehlo/stablehlo_elementwise.c \
  c_src/ir/stablehlo/stablehlo_fft.c \
  c_src/ir/stablehlo/stablehlo_linalg.c \
  c_src/ir/stablehlo/stablehlo_mesh.c \
  c_src/ir/stablehlo/stablehlo_pieces.c \
  c_src/ir/stablehlo/stablehlo_quantized.c \
  c_src/ir/stablehlo/stablehlo_reduce.c \
  c_src/ir/stablehlo/stablehlo_scatter.c \
  c_src/ir/stablehlo/stablehlo_shape.c \
  c_src/ir/stablehlo/stablehlo_sort.c \
  c_src/ir/stablehlo/stablehlo_write.c \
  c_src/ir/syntax.c \
  c_src/ir/verify.c

STABLEHLO_SRC := \
  c_src/stablehlo/bytecode.c \
  c_src/stablehlo/bytecode_attr.c \
  c_src/stablehlo/bytecode_op.c \
  c_src/stablehlo/bytecode_props.c \
  c_src/stablehlo/bytecode_sdy.c \
  c_src/stablehlo/bytecode_type.c \
  c_src/stablehlo/bytecode_vhlo.c \
  c_src/stablehlo/interface/exported.c \
  c_src/stablehlo/interface/leaves.c \
  c_src/stablehlo/location/location_bytecode.c \
  c_src/stablehlo/location/location_place.c \
  c_src/stablehlo/location/location_text.c \
  c_src/stablehlo/make.c \
  c_src/stablehlo/mesh/make_axes.c \
  c_src/stablehlo/make_chlo.c \
  c_src/stablehlo/make_collective.c \
  c_src/stablehlo/make_control.c \
  c_src/stablehlo/make_conv.c \
  c_src/stablehlo/make_custom.c \
  c_src/stablehlo/make_dynamic.c \
  c_src/stablehlo/make_fold.c \
  c_src/stablehlo/make_gather.c \
  c_src/stablehlo/make_known.c \
  c_src/stablehlo/make_lapack.c \
  c_src/stablehlo/mesh/make_local.c \
  c_src/stablehlo/mesh/make_members.c \
  c_src/stablehlo/mesh/make_mesh.c \
  c_src/stablehlo/make_norm.c \
  c_src/stablehlo/make_ops.c \
  c_src/stablehlo/make_order.c \
  c_src/stablehlo/make_parallel.c \
  c_src/stablehlo/make_quant.c \
  c_src/stablehlo/make_random.c \
  c_src/stablehlo/make_reduce.c \
  c_src/stablehlo/make_region.c \
  c_src/stablehlo/make_sort.c \
  c_src/stablehlo/make_sparse.c \
  c_src/stablehlo/make_special.c \
  c_src/stablehlo/make_tridiagonal.c \
  c_src/stablehlo/make_tuple.c \
  c_src/stablehlo/mlir_attr.c \
  c_src/stablehlo/mlir_lex.c \
  c_src/stablehlo/mlir_module.c \
  c_src/stablehlo/mlir_parse.c \
  c_src/stablehlo/mlir_sharding.c \
  c_src/stablehlo/mlir_type.c \
  c_src/stablehlo/read.c

PASS_SRC := \
  c_src/pass/affine.c \
  c_src/pass/collapse.c \
  c_src/pass/dce.c \
  c_src/pass/dots.c \
  c_src/pass/dots_rows.c \
  c_src/pass/expand.c \
  c_src/pass/fold.c \
  c_src/pass/fuse.c \
  c_src/pass/fuse_check.c \
  c_src/pass/fuse_plan.c \
  c_src/pass/fuse_siblings.c \
  c_src/pass/hoist.c \
  c_src/pass/invariants.c \
  c_src/pass/turn.c \
  c_src/pass/normalize.c \
  c_src/pass/order.c \
  c_src/pass/pipeline.c \
  c_src/pass/loops.c \
  c_src/pass/loops_build.c \
  c_src/pass/loops_factors.c \
  c_src/pass/loops_systems.c \
  c_src/pass/nest.c \
  c_src/pass/nest_build.c \
  c_src/pass/nest_order.c \
  c_src/pass/rewrite.c \
  c_src/pass/rules.c \
  c_src/pass/simplify.c \
  c_src/pass/simplify_arithmetic.c \
  c_src/pass/widen.c \
  c_src/pass/guard.c \
  c_src/pass/complex/complex.c \
  c_src/pass/complex/complex_formula.c \
  c_src/pass/complex/complex_math.c \
  c_src/pass/complex/complex_power.c \
  c_src/pass/simplify_shape.c \
  c_src/pass/vector_dot.c

SHARD_SRC := \
  c_src/shard/combine.c \
  c_src/shard/control.c \
  c_src/shard/factors.c \
  c_src/shard/halo.c \
  c_src/shard/masked.c \
  c_src/shard/moved.c \
  c_src/shard/part_ops.c \
  c_src/shard/partial.c \
  c_src/shard/partition.c \
  c_src/shard/parts.c \
  c_src/shard/propagate.c \
  c_src/shard/report.c \
  c_src/shard/reshard.c \
  c_src/shard/values.c \
  c_src/shard/varying.c

JIT_SRC := \
  c_src/jit/emit/emit.c \
  c_src/jit/emit/emit_convert.c \
  c_src/jit/emit/emit_half.c c_src/jit/emit/emit_small.c \
  c_src/jit/emit/emit_cell.c \
  c_src/jit/emit/emit_interleave.c \
  c_src/jit/emit/emit_memory.c \
  c_src/jit/emit/emit_op.c \
  c_src/jit/emit/emit_step.c \
  c_src/jit/emit/emit_wide.c \
  c_src/jit/emit/gemm_emit.c \
  c_src/jit/emit/gemm_emit_vector.c \
  c_src/jit/emit/whole.c \
  c_src/jit/emit/whole_emit.c \
  c_src/jit/flow/flow.c \
  c_src/jit/flow/flow_cells.c \
  c_src/jit/flow/flow_dot.c \
  c_src/jit/flow/flow_emit.c \
  c_src/jit/flow/flow_scan.c \
  c_src/jit/flow/flow_scatter.c \
  c_src/jit/flow/flow_turn.c \
  c_src/jit/kernel.c \
  c_src/jit/kernel_node.c \
  c_src/jit/loop/loop_body.c \
  c_src/jit/loop/loop_col.c \
  c_src/jit/loop/loop_col_parts.c \
  c_src/jit/loop/loop_col_groups.c \
  c_src/jit/loop/loop_interleaved.c \
  c_src/jit/loop/loop_joined.c \
  c_src/jit/loop/loop_map.c \
  c_src/jit/loop/loop_moves.c \
  c_src/jit/loop/loop_picks.c \
  c_src/jit/loop/loop_pieces.c \
  c_src/jit/loop/loop_plan.c \
  c_src/jit/loop/loop_points.c \
  c_src/jit/loop/loop_reduce.c \
  c_src/jit/loop/loop_row.c \
  c_src/jit/loop/loop_runs.c \
  c_src/jit/loop/loop_search.c \
  c_src/jit/loop/loop_short.c \
  c_src/jit/loop/loop_tile.c \
  c_src/jit/lower/launch_part.c \
  c_src/jit/lower/layout.c \
  c_src/jit/lower/lower.c \
  c_src/jit/lower/lower_joined.c \
  c_src/jit/lower/lower_near.c \
  c_src/jit/lower/lower_tile.c \
  c_src/jit/lower/lower_launch.c \
  c_src/jit/lower/lower_reduce.c \
  c_src/jit/lower/maker.c \
  c_src/jit/math/vecmath.c \
  c_src/jit/math/vecmath_build.c \
  c_src/jit/math/vecmath_avx512.c \
  c_src/jit/math/vecmath_erf.c \
  c_src/jit/math/vecmath_exp.c \
  c_src/jit/math/vecmath_library.c \
  c_src/jit/math/vecmath_log.c \
  c_src/jit/math/vecmath_pow.c \
  c_src/jit/math/vecmath_table.c \
  c_src/jit/math/vecmath_trig.c \
  c_src/jit/session/build_id.c \
  c_src/jit/session/builtin.c \
  c_src/jit/session/jit_compile.c \
  c_src/jit/session/jit_debug.c \
  c_src/jit/session/jit_disk.c \
  c_src/jit/session/jit_link.c \
  c_src/jit/session/jit_reloc.c \
  c_src/jit/session/jit_session.c \
  c_src/jit/session/jit_name.c \
  c_src/jit/session/jit_threads.c \
  c_src/jit/session/llvm_exit.c \
  c_src/jit/session/target.c

# The program that makes the kernels which are built in.
BUILTIN_SRC := c_src/jit/session/builtin_main.c

KERNEL_SRC := \
  c_src/kernel/complex_reduce.c \
  c_src/kernel/custom.c \
  c_src/kernel/custom_text.c \
  c_src/kernel/lapack.c \
  c_src/kernel/pick.c \
  c_src/kernel/pick_avx2.c \
  c_src/kernel/pick_avx512.c \
  c_src/kernel/pick_base.c \
  c_src/kernel/routine.c \
  c_src/kernel/scatter.c \
  c_src/kernel/scatter_half_avx2.c \
  c_src/kernel/scatter_half_base.c \
  c_src/kernel/scatter_update.c \
  c_src/kernel/scatter_wide_avx2.c \
  c_src/kernel/vector_dot.c \
  c_src/kernel/vector_dot_avx2.c \
  c_src/kernel/vector_dot_avx512.c \
  c_src/kernel/vector_dot_base.c \
  c_src/kernel/conv/conv.c \
  c_src/kernel/conv/conv_cut.c \
  c_src/kernel/conv/conv_depthwise.c \
  c_src/kernel/conv/conv_direct.c \
  c_src/kernel/conv/conv_few.c \
  c_src/kernel/conv/conv_panels.c \
  c_src/kernel/conv/conv_phases.c \
  c_src/kernel/conv/conv_rows.c \
  c_src/kernel/conv/window.c \
  c_src/kernel/conv/window_avx2.c \
  c_src/kernel/conv/window_avx512.c \
  c_src/kernel/conv/window_base.c \
  c_src/kernel/conv/window_scatter.c \
  c_src/kernel/conv/window_taps.c \
  c_src/kernel/fft/fft.c \
  c_src/kernel/fft/fft_core.c \
  c_src/kernel/fft/fft_lanes.c \
  c_src/kernel/fft/fft_line.c \
  c_src/kernel/fft/fft_plan.c \
  c_src/kernel/fft/fft_roots.c \
  c_src/kernel/fft/fft_routine.c \
  c_src/kernel/fft/fft_vector_avx2.c \
  c_src/kernel/fft/fft_vector_avx512.c \
  c_src/kernel/fft/fft_vector_base.c \
  c_src/kernel/gemm/gemm.c \
  c_src/kernel/gemm/gemm_amx.c \
  c_src/kernel/gemm/bf16/gemm_bf16.c \
  c_src/kernel/gemm/bf16/gemm_bf16_chain.c \
  c_src/kernel/gemm/bf16/gemm_bf16_vector.c \
  c_src/kernel/gemm/gemm_items.c \
  c_src/kernel/gemm/gemm_layout.c \
  c_src/kernel/gemm/gemm_long.c \
  c_src/kernel/gemm/gemm_pack.c \
  c_src/kernel/gemm/gemm_pack_complex.c \
  c_src/kernel/gemm/gemm_pack_native.c \
  c_src/kernel/gemm/gemm_plan.c \
  c_src/kernel/gemm/gemm_prepare.c \
  c_src/kernel/gemm/gemm_quads.c \
  c_src/kernel/gemm/gemm_small.c \
  c_src/kernel/gemm/gemm_routine.c \
  c_src/kernel/gemm/gemm_tiles.c \
  c_src/kernel/gemm/gemm_vector.c \
  c_src/kernel/gemm/gemm_widen.c \
  c_src/kernel/gemm/gemm_widen_avx2.c \
  c_src/kernel/gemm/quantized.c \
  c_src/kernel/gemm/quantized_avx2.c \
  c_src/kernel/gemm/quantized_avx512.c \
  c_src/kernel/gemm/quantized_bf16.c \
  c_src/kernel/gemm/quantized_base.c \
  c_src/kernel/gemm/quantized_routine.c \
  c_src/kernel/gemm/complex/complex_vector.c \
  c_src/kernel/gemm/complex/complex_vector_avx2.c \
  c_src/kernel/gemm/complex/complex_vector_avx512.c \
  c_src/kernel/gemm/complex/complex_vector_base.c \
  c_src/kernel/gemm/scaled_row.c \
  c_src/kernel/gemm/scaled_row_avx2.c \
  c_src/kernel/gemm/scaled_row_avx512.c \
  c_src/kernel/gemm/scaled_row_base.c \
  c_src/kernel/gemm/thin/thin_avx2.c \
  c_src/kernel/gemm/thin/thin_base.c \
  c_src/kernel/linalg/cholesky.c \
  c_src/kernel/linalg/factor.c \
  c_src/kernel/linalg/factor_bidiagonal.c \
  c_src/kernel/linalg/factor_divide.c \
  c_src/kernel/linalg/factor_eigh.c \
  c_src/kernel/linalg/factor_lines.c \
  c_src/kernel/linalg/factor_numbers.c \
  c_src/kernel/linalg/factor_panels.c \
  c_src/kernel/linalg/factor_ql.c \
  c_src/kernel/linalg/factor_qr.c \
  c_src/kernel/linalg/factor_routine.c \
  c_src/kernel/linalg/factor_secular.c \
  c_src/kernel/linalg/factor_solve.c \
  c_src/kernel/linalg/factor_svd.c \
  c_src/kernel/linalg/factor_turns.c \
  c_src/kernel/linalg/linalg.c \
  c_src/kernel/linalg/linalg_vector_avx2.c \
  c_src/kernel/linalg/linalg_vector_avx512.c \
  c_src/kernel/linalg/linalg_vector_base.c \
  c_src/kernel/linalg/lu.c \
  c_src/kernel/linalg/lu_panels.c \
  c_src/kernel/ref/ref.c \
  c_src/kernel/ref/ref_complex.c \
  c_src/kernel/ref/ref_dot.c \
  c_src/kernel/ref/ref_quantized.c \
  c_src/kernel/ref/ref_elementwise.c \
  c_src/kernel/ref/ref_fft.c \
  c_src/kernel/ref/ref_linalg.c \
  c_src/kernel/ref/ref_linalg_batch.c \
  c_src/kernel/ref/ref_linalg_factors.c \
  c_src/kernel/ref/ref_linalg_systems.c \
  c_src/kernel/ref/ref_partitions.c \
  c_src/kernel/ref/ref_reduce.c \
  c_src/kernel/ref/ref_routine.c \
  c_src/kernel/ref/ref_scalar.c \
  c_src/kernel/ref/ref_shape.c \
  c_src/kernel/ref/ref_sort.c \
  c_src/kernel/ref/ref_sum.c \
  c_src/kernel/ref/ref_window.c \
  c_src/kernel/scan/scan.c \
  c_src/kernel/scan/scan_avx2.c \
  c_src/kernel/scan/scan_avx512.c \
  c_src/kernel/scan/scan_base.c \
  c_src/kernel/sort/sort.c \
  c_src/kernel/sort/sort_first.c \
  c_src/kernel/sort/sort_lanes.c \
  c_src/kernel/sort/sort_lanes_avx2.c \
  c_src/kernel/sort/sort_lanes_avx512.c \
  c_src/kernel/sort/sort_lanes_base.c \
  c_src/kernel/sort/sort_parts.c \
  c_src/kernel/sort/sort_radix.c \
  c_src/kernel/sort/sort_routine.c \
  c_src/kernel/sort/sort_select.c \
  c_src/kernel/sort/sort_short.c \
  c_src/kernel/sort/sort_special.c \
  c_src/kernel/sort/sort_top.c

EXEC_SRC := \
  c_src/exec/assign.c \
  c_src/exec/away.c \
  c_src/exec/build.c \
  c_src/exec/build_control.c \
  c_src/exec/build_mesh.c \
  c_src/exec/build_routine.c \
  c_src/exec/build_step.c \
  c_src/exec/choose.c \
  c_src/exec/epilogue.c \
  c_src/exec/executable.c \
  c_src/exec/native.c \
  c_src/exec/native_part.c \
  c_src/exec/native_run.c \
  c_src/exec/order.c \
  c_src/exec/pace.c \
  c_src/exec/places.c \
  c_src/exec/plan.c \
  c_src/exec/plan_sweep.c \
  c_src/exec/pool.c \
  c_src/exec/profile.c \
  c_src/exec/run.c \
  c_src/exec/run_routine.c \
  c_src/exec/single.c \
  c_src/exec/steps.c \
  c_src/exec/stripes/build.c \
  c_src/exec/stripes/find.c \
  c_src/exec/stripes/plan.c \
  c_src/exec/stripes/run.c \
  c_src/exec/words.c \
  c_src/exec/slices.c \
  c_src/exec/tasks.c \
  c_src/exec/trips.c

GROUP_SRC := \
  c_src/group/carrier.c \
  c_src/group/collective.c \
  c_src/group/collective_reduce.c \
  c_src/group/group.c \
  c_src/group/ranks.c \
  c_src/group/algorithms.c \
  c_src/group/selection.c \
  c_src/group/spread.c \
  c_src/group/shares.c

DEVICE_SRC := \
  c_src/device/client.c \
  c_src/device/describe.c \
  c_src/device/group.c \
  c_src/device/host.c \
  c_src/device/host_run.c \
  c_src/device/loaded.c \
  c_src/device/pending.c \
  c_src/device/transfer.c \
  c_src/device/wait.c

PJRT_SRC := \
  c_src/pjrt/client.c \
  c_src/pjrt/compile.c \
  c_src/pjrt/deadline.c \
  c_src/pjrt/memory.c \
  c_src/pjrt/open.c \
  c_src/pjrt/pjrt.c \
  c_src/pjrt/plugin.c \
  c_src/pjrt/program.c \
  c_src/pjrt/remote.c \
  c_src/pjrt/remote_call.c \
  c_src/pjrt/remote_start.c \
  c_src/pjrt/run.c \
  c_src/pjrt/share.c \
  c_src/pjrt/split.c \
  c_src/pjrt/split_run.c \
  c_src/pjrt/types.c \
  c_src/pjrt/wire.c \
  c_src/pjrt/work.c

# The process of a plugin: a program of its own.
SERVER_SRC := c_src/pjrt/server.c

# The plugin of PJRT, a shared object of its own.
PLUGIN_SRC := \
  c_src/plugin/api.c \
  c_src/plugin/answer.c \
  c_src/plugin/buffer.c \
  c_src/plugin/client.c \
  c_src/plugin/event.c \
  c_src/plugin/executable.c \
  c_src/plugin/execute.c \
  c_src/plugin/options.c \
  c_src/plugin/shardings.c

FRONT_SRC := \
  c_src/front/call.c \
  c_src/front/expr.c \
  c_src/front/expr_form.c \
  c_src/front/expr_kept.c \
  c_src/front/expr_leaf.c \
  c_src/front/expr_make.c \
  c_src/front/expr_pack.c \
  c_src/front/expr_read.c \
  c_src/front/expr_rule.c \
  c_src/front/number.c \
  c_src/front/programs.c \
  c_src/front/promote.c \
  c_src/front/tracer.c \
  c_src/front/tracer_local.c

# The library for MPI.
COMM_SRC := \
  c_src/comm/agree.c \
  c_src/comm/bells.c \
  c_src/comm/mpi.c \
  c_src/comm/watch.c

NIF_SRC := \
  c_src/nif/nif_attrs.c \
  c_src/nif/nif_binary.c \
  c_src/nif/nif_block.c \
  c_src/nif/nif_device.c \
  c_src/nif/nif_eager.c \
  c_src/nif/nif_executable.c \
  c_src/nif/nif_file.c \
  c_src/nif/nif_graph.c \
  c_src/nif/nif_job.c \
  c_src/nif/nif_list.c \
  c_src/nif/nif_local.c \
  c_src/nif/nif_mapped.c \
  c_src/nif/nif_main.c \
  c_src/nif/nif_mesh.c \
  c_src/nif/nif_pointer.c \
  c_src/nif/nif_proxy.c \
  c_src/nif/nif_rank.c \
  c_src/nif/nif_signature.c \
  c_src/nif/nif_tensor.c \
  c_src/nif/nif_text.c \
  c_src/nif/nif_transfer.c \
  c_src/nif/nif_turns.c \
  c_src/nif/nif_util.c \
  c_src/nif/nif_watch.c \
  c_src/nif/run/nif_answer.c \
  c_src/nif/run/nif_args.c \
  c_src/nif/run/nif_group.c \
  c_src/nif/run/nif_known.c \
  c_src/nif/run/nif_run.c \
  c_src/nif/digest/nif_digest.c \
  c_src/nif/digest/nif_digest_map.c \
  c_src/nif/digest/nif_digest_plain.c \
  c_src/nif/digest/nif_digest_walk.c \
  c_src/nif/profile/nif_kept.c \
  c_src/nif/profile/nif_makers.c \
  c_src/nif/profile/nif_places.c \
  c_src/nif/profile/nif_profile.c \
  c_src/nif/expr/nif_expr.c \
  c_src/nif/expr/nif_expr_terms.c

TOOL_SRC := \
  c_src/tool/compare.c \
  c_src/tool/judge.c \
  c_src/tool/opt_args.c \
  c_src/tool/opt_batch.c \
  c_src/tool/opt_check.c \
  c_src/tool/opt_launches.c \
  c_src/tool/opt_loops.c \
  c_src/tool/opt_read.c \
  c_src/tool/opt_run.c \
  c_src/tool/random_args.c \
  c_src/tool/tessera_opt.c

# Modules of Erlang that the shell documents. mk/native.sh reads this line, too.
PUBLIC_SRC := erl/api/*.erl erl/picture/tessera_plot.erl erl/picture/tessera_progress.erl erl/io/tessera_io.erl erl/io/tessera_stablehlo.erl erl/cluster/tessera_cluster.erl

# What several tests share; linked to each. The plugin: to the one that calls it.
TEST_SUPPORT_SRC := \
  $(PLUGIN_SRC) \
  c_src/tool/compare.c \
  c_src/tool/judge.c \
  c_src/tool/opt_loops.c \
  c_src/tool/random_args.c \
  test/c/bounds.c \
  test/c/complex_check.c \
  test/c/infer_case.c \
  test/c/infer_control.c \
  test/c/infer_reductions.c \
  test/c/infer_shapes.c \
  test/c/jit_kernels.c \
  test/c/kernel_case.c \
  test/c/lesser_isa.c \
  test/c/async_device.c \
  test/c/operation_end.c \
  test/c/pjrt_direct.c \
  test/c/pjrt_file.c \
  test/c/open_order.c \
  test/c/plugin_calls.c \
  test/c/math_check.c \
  test/c/launch.c \
  test/c/linalg_check.c \
  test/c/random_control.c \
  test/c/random_elementwise.c \
  test/c/random_factors.c \
  test/c/random_graph.c \
  test/c/random_move.c \
  test/c/random_reduce.c \
  test/c/rank_job.c \
  test/c/routine_check.c \
  test/c/shard_run.c \
  test/c/tensors.c

# What takes the instructions of AMX's tiles, or says that there are some.
AMX_SRC := \
  c_src/jit/session/target.c \
  c_src/kernel/gemm/bf16/gemm_bf16_vector.c \
  c_src/kernel/gemm/gemm_amx.c

# Of C_TESTS, those that run once more on a model of AMX.
AMX_MODEL_TESTS := \
  test_gemm_amx \
  test_quantized

# test/c/<name>.c each, with its own main().
C_TESTS := \
  test_base \
  test_builtin \
  test_callback \
  test_cancel \
  test_cgroup \
  test_choose \
  test_compare \
  test_compiled \
  test_complex \
  test_complex_reduce \
  test_conv \
  test_device \
  test_gemm \
  test_gemm_amx \
  test_gemm_complex \
  test_gemm_long \
  test_gemm_small \
  test_gemm_widen \
  test_quantized \
  test_scaled_row \
  test_exec \
  test_factors \
  test_factors_complex \
  test_fft \
  test_file \
  test_expr_read \
  test_front \
  test_graph \
  test_group \
  test_infer \
  test_emit_memory \
  test_epilogue \
  test_jit \
  test_jit_disk \
  test_jit_link \
  test_jit_reloc \
  test_kernel \
  test_kernel_groups \
  test_judge \
  test_lapack \
  test_layout \
  test_llvm_exit \
  test_linalg \
  test_lower \
  test_many_ranks \
  test_matrix_classes \
  test_pace \
  test_partitions \
  test_pass \
  test_pick \
  test_pjrt \
  test_pjrt_late \
  test_pjrt_share \
  test_pjrt_split \
  test_places \
  test_plan \
  test_plugin \
  test_plugin_partitions \
  test_platform \
  test_pool \
  test_nest \
  test_random \
  test_ranks \
  test_ref \
  test_ref_reduce \
  test_ref_scalar \
  test_ref_shape \
  test_scan \
  test_scatter \
  test_search \
  test_prepared \
  test_profile \
  test_round_trip \
  test_round_trip_mesh \
  test_routine_memory \
  test_rules \
  test_small \
  test_shard \
  test_sort \
  test_sort_op \
  test_tensor \
  test_text \
  test_tracer \
  test_vecmath \
  test_native \
  test_whole \
  test_vector_dot \
  test_window

# Those that use threads, also run under ThreadSanitizer.
TSAN_TESTS := \
  test_device \
  test_platform \
  test_plugin \
  test_plugin_partitions \
  test_exec \
  test_cancel \
  test_epilogue \
  test_pace \
  test_pool \
  test_prepared \
  test_factors \
  test_factors_complex \
  test_gemm \
  test_gemm_amx \
  test_gemm_complex \
  test_gemm_long \
  test_gemm_small \
  test_gemm_widen \
  test_quantized \
  test_scaled_row \
  test_group \
  test_jit \
  test_jit_disk \
  test_linalg \
  test_many_ranks \
  test_ranks \
  test_sort \
  test_tensor

# Of these the ones that .ci/run has time for: threads that wait for each other, not those that share work.
TSAN_FEW := test_device test_platform test_plugin test_exec test_cancel test_pool test_prepared test_group test_jit test_ranks test_tensor

# Tests of a few seconds for `make check`.
CHECK_C := test_base test_graph test_text test_infer test_pass test_ref test_exec test_lower test_shard
CHECK_ERL := tessera_op_tests tessera_tensor_tests tessera_eager_tests tessera_jit_tests tessera_tracing_tests tessera_control_tests \
  tessera_grad_tests tessera_linalg_tests tessera_misuse_tests tessera_indices_tests tessera_order_tests tessera_doc_tests

# Modules of test/erl/ that test NIFs and what they own: memory, handles, processes, foreign data. Without those that reach
# NIFs as others here do, but with large tensors (tessera_cancel_tests) or many small programs (tessera_tracing_tests).
NIF_MODULES := \
  tessera_cache_tests \
  tessera_client_tests \
  tessera_cluster_wire_tests \
  tessera_concurrency_tests \
  tessera_control_tests \
  tessera_digest_tests \
  tessera_eager_tests \
  tessera_fault_tests \
  tessera_group_tests \
  tessera_empty_tests \
  tessera_hostile_tests \
  tessera_io_tests \
  tessera_jit_tests \
  tessera_known_tests \
  tessera_memory_tests \
  tessera_misuse_tests \
  tessera_nx_backend_tests \
  tessera_nx_compiler_tests \
  tessera_nx_disk_tests \
  tessera_nx_mutants_tests \
  tessera_nx_plain_tests \
  tessera_places_tests \
  tessera_plugin_tests \
  tessera_pointer_tests \
  tessera_proxy_tests \
  tessera_remote_tests \
  tessera_shard_map_tests \
  tessera_slices_tests \
  tessera_small_tests \
  tessera_stablehlo_tests \
  tessera_tensor_tests \
  tessera_turns_tests

# test/fuzz/<name>.c each, with LLVMFuzzerTestOneInput().
FUZZERS := \
  fuzz_bytecode \
  fuzz_expression \
  fuzz_graph \
  fuzz_object \
  fuzz_parse \
  fuzz_stablehlo \
  fuzz_program
