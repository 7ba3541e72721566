#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "cli/command.h"
#include "cli/load/load.h"
#include "cli/options/shared.h"
#include "cli/options/values.h"
#include "cli/output.h"
#include "cli/parse.h"
#include "cli/probe/doctor_run.h"
#ifdef RECKON_HAS_CUDA
#include "executor/cuda/libraries/nccl.h"
#endif
#include "executor/probe/nvml.h"
#include "report/html/html.h"
#include "sim/step/network/referee.h"

namespace reckon::cli {
namespace {

struct DoctorOptions : Files, AnswerFormat, CatalogChoice {
  bool check_only = false;

  std::vector<Option> declared() {
    return {{{"check", "", "with RUN: report damage without repairing it"}, given(check_only)},
            format_option(),
            catalog_option()};
  }
  void check() const {
    if (files.size() > 1) throw UsageError("doctor takes one run's directory, or none");
    if (files.empty() && check_only)
      throw UsageError("--check goes with a run's directory: reckon doctor RUN --check");
  }
};

struct Finding {
  std::string name;
  bool ok = false;
  std::string detail;
  std::string todo;  // what to do where it is absent, and what works without
};

Finding catalogs(const CatalogChoice& choice) {
  const std::string directory = default_catalog_directory().string();
  const std::string todo =
      "set RECKON_CATALOGS to the directory of the catalogs; nothing can be "
      "simulated without";
  try {
    const auto catalog = load_catalogs(choice);
    if (!catalog) {
      const Diagnostics& problems = catalog.error();
      return {"catalogs", false,
              fmt::format("{} mistake{}, the first: {}", problems.size(),
                          problems.size() == 1 ? "" : "s", format(problems.front())),
              todo};
    }
    std::string oldest, newest;
    for (const Offering& o : catalog->offerings) {
      if (o.date.empty()) continue;
      if (oldest.empty() || o.date < oldest) oldest = o.date;
      newest = std::max(newest, o.date);
    }
    return {"catalogs", true,
            fmt::format("{}, digest {}, {} prices from {} to {}", directory, catalog->digest,
                        catalog->offerings.size(), oldest, newest),
            ""};
  } catch (const std::exception& e) {
    return {"catalogs", false, e.what(), todo};
  }
}

Finding referee() {
  const std::string todo = "install libsimgrid-dev and build again; only --engine simgrid needs it";
  try {
    const std::string program = find_referee().string();
    if (::access(program.c_str(), X_OK) == 0) return {"referee", true, program, ""};
    return {"referee", false, fmt::format("'{}' cannot be run", program), todo};
  } catch (const std::exception& e) {
    return {"referee", false, e.what(), todo};
  }
}

Finding cuda() {
#ifdef RECKON_HAS_CUDA
  return {"cuda", true, "GPU code is compiled in", ""};
#else
  return {"cuda", false, "built without GPU code",
          "install the CUDA toolkit and build preset release; forecasts need none"};
#endif
}

Finding nccl() {
#ifdef RECKON_HAS_CUDA
  const std::string problem = cuda::why_no_nccl();
  if (problem.empty()) return {"nccl", true, "libnccl.so.2, version " + cuda::nccl_version(), ""};
#else
  const std::string problem = "built without GPU code";
#endif
  return {"nccl", false, problem,
          "install NCCL, or name the folder of PyTorch's in LD_LIBRARY_PATH; one device and "
          "forecasts need none"};
}

Finding gpu() {
  const NvmlAnswer answer = ask_nvml();
  std::string names;
  for (const AcceleratorRecord& a : answer.accelerators)
    names += (names.empty() ? "" : ", ") + a.name;
  const std::size_t count = answer.accelerators.size();
  if (count > 0) return {"gpu", true, fmt::format("{} visible: {}", count, names), ""};
  return {"gpu", false, answer.problem,
          "install the driver, or is CUDA_VISIBLE_DEVICES or the container's device list empty? "
          "forecasts need none"};
}

Finding html() {
  if (why_no_html().empty()) return {"html", true, "Vega and Vega-Lite are in this program", ""};
  return {"html", false, why_no_html(), kHtmlTodo};
}

Finding cores() {
  const unsigned cores = std::max(1U, std::thread::hardware_concurrency());
  return {"cores", true, fmt::format("{}; --threads takes fewer", cores), ""};
}

Finding terminal() {
  winsize size{};
  if (::isatty(STDOUT_FILENO) != 1)
    return {"terminal", false, "standard output is no terminal",
            "nothing: output is the same, without a line of progress"};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0)
    return {"terminal", true, "of unknown width", ""};
  return {"terminal", true, fmt::format("{} columns", size.ws_col), ""};
}

/// The first program of that name in PATH; empty: none.
std::filesystem::path in_path(const std::string& program) {
  const char* path = std::getenv("PATH");
  std::istringstream directories(path == nullptr ? "" : path);
  for (std::string directory; std::getline(directories, directory, ':');) {
    if (directory.empty()) continue;
    const auto file = std::filesystem::path(directory) / program;
    if (::access(file.c_str(), X_OK) == 0) return file;
  }
  return {};
}

Finding kubectl() {
  const auto found = in_path("kubectl");
  if (!found.empty()) return {"kubectl", true, found.string(), ""};
  return {"kubectl", false, "not in PATH",
          "install it to look at a cluster of your own; forecasts need none"};
}

std::string as_text(const std::vector<Finding>& findings) {
  std::string out = fmt::format("reckon {}\n\n", RECKON_VERSION);
  for (const Finding& f : findings) {
    out += fmt::format("{:<10} {:<7} {}\n", f.name, f.ok ? "OK" : "absent", f.detail);
    if (!f.todo.empty()) out += fmt::format("{:<18} {}\n", "", f.todo);
  }
  return out;
}

std::string as_json(const std::vector<Finding>& findings) {
  nlohmann::ordered_json checks = nlohmann::ordered_json::array();
  for (const Finding& f : findings) {
    nlohmann::ordered_json check{{"name", f.name}, {"ok", f.ok}, {"detail", f.detail}};
    check["what_to_do"] =
        f.todo.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(f.todo);
    checks.push_back(std::move(check));
  }
  const nlohmann::ordered_json all{{"schema_version", 1},
                                   {"command", "doctor"},
                                   {"reckon_version", RECKON_VERSION},
                                   {"checks", checks}};
  return all.dump(2) + "\n";
}

}  // namespace

std::vector<OptionText> doctor_options() { return shown_options<DoctorOptions>(); }

int run_doctor(const Command& self, std::span<const std::string> arguments) {
  const auto options = parse<DoctorOptions>(self, arguments);
  if (!options) return kDone;
  if (!options->files.empty())
    return run_doctor_of(options->files.front(), options->check_only, options->format);
  const std::vector<Finding> findings{
      catalogs(*options), referee(), cuda(), nccl(), gpu(), html(), cores(), terminal(), kubectl()};
  print(options->format == OutputFormat::json ? as_json(findings) : as_text(findings));
  return kDone;
}

}  // namespace reckon::cli
