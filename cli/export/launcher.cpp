#include <fmt/format.h>

#include "cli/exit_code.h"
#include "cli/export/parts.h"
#include "sim/base/standard_streams.h"
#include "sim/forecast/pace.h"

// `reckon export torchtitan|megatron|deepspeed|accelerate|maxtext`.
namespace reckon::cli {
namespace {

LaunchTimes times_of(const LoadedPlan& loaded) {
  if (loaded.plan.jobs.size() != 1) return {};  // refused behind this
  const PacedJob paced = make_pace(loaded.plan, *make_network({}));
  return {.step = paced.step.step,
          .checkpoint_interval = paced.pace.checkpoint_interval,
          .checkpoint_save = paced.pace.checkpoint_save};
}

Expected<std::string> started(const LauncherFile& file, const LaunchLayout& layout,
                              const LoadedPlan& loaded, const ExportOptions& options,
                              const LoadedCatalog& catalog, Framework framework) {
  const auto as = as_one_of<Starter>(options, to_text(framework));
  if (!as && !options.program.empty())
    throw UsageError("--program goes into what --as writes: --as script, slurm or jobset");
  if (!as) return file.text;
  if (layout.is_tpu() && (*as == Starter::script || *as == Starter::slurm))
    throw UsageError(fmt::format("--as {} is for GPUs; --as jobset", options.as));
  if (*as == Starter::script) return start_script(file, layout, options.program);
  if (*as == Starter::slurm) return slurm_script(file, layout, options.program);
  if (options.image.empty())
    throw UsageError(fmt::format("--as {} needs --image NAME, an image with {}", options.as,
                                 to_text(framework)));
  KubernetesExport how = manifest_of(options);
  how.as = from_text<JobShape>(to_text(*as)).value();  // they have the same words
  return launcher_manifests(file, layout, options.program,
                            for_cluster(artifact_of(loaded, options.files[1], options), catalog),
                            how, loaded.file.places);
}

}  // namespace

int export_launcher(Framework framework, const ExportOptions& options,
                    const LoadedCatalog& catalog) {
  const auto loaded = checked(load_plan_that_fits(options.files[1], options, catalog));
  const Places& places = loaded.file.places;
  const auto layout = checked(launch_layout_of(loaded.plan, places, times_of(loaded)));
  const auto file = checked(launcher_file(framework, layout, places));
  put_out(options, checked(started(file, layout, loaded, options, catalog, framework)));
  for (const std::string& left : file.left_to_program)
    print_error(fmt::format("reckon: left to you: {}\n", left));
  if (options.as.empty())
    for (const auto& [name, value] : file.environment)
      print_error(fmt::format("reckon: in the environment: {}={}\n", name, value));
  return kDone;
}

}  // namespace reckon::cli
