#include <fmt/format.h>
#include <sys/resource.h>

#include <exception>
#include <span>
#include <stdexcept>

#include "cli/errors.h"
#include "cli/exit_code.h"
#include "cli/load/load.h"
#include "cli/options/usage_error.h"
#include "cli/output.h"
#include "cli/worker/export.h"
#include "cli/worker/serve.h"
#include "cli/worker/train.h"
#include "executor/comm/errors.h"
#include "executor/serve/model_version.h"
#include "executor/train/checkpoint/checkpoint_set.h"
#include "executor/train/data/source.h"
#include "executor/train/stop_signal.h"
#include "executor/train/trainer.h"
#include "executor/worker/job.h"

namespace {

/// Rank 0 holds a connection to each process of its job; shells give 1,024 descriptors, and allow
/// more to who asks.
void raise_descriptor_limit() {
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur == files.rlim_max) return;
  files.rlim_cur = files.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &files);
}

int dispatch(std::span<const std::string> words) {
  using namespace reckon::cli;
  // Words that are no plan: a file of that name is given as ./serve.
  if (!words.empty() && words.front() == "serve") return run_serve(words.subspan(1));
  if (!words.empty() && words.front() == "export") return run_model_export(words.subspan(1));
  return run_worker(words);
}

}  // namespace

int main(int argc, char** argv) {
  using namespace reckon;
  using namespace reckon::cli;
  raise_descriptor_limit();
  watch_stop_signals();
  const auto say = [](const std::exception& e) {
    print_error(fmt::format("reckon-worker: error: {}\n", e.what()));
  };
  const auto refuse_words = [](const std::string& what, std::string hint) {
    if (!hint.empty()) hint += '\n';
    print_error(fmt::format("reckon-worker: {}\n{}Try 'reckon-worker --help'.\n", what, hint));
  };
  try {
    const std::vector<std::string> words(argv + 1, argv + argc);
    return dispatch(words);
  } catch (const UsageErrorWithHint& e) {
    refuse_words(e.what(), e.hint);
    return kInputIsWrong;
  } catch (const UsageError& e) {
    refuse_words(e.what(), "");
    return kInputIsWrong;
  } catch (const std::invalid_argument& e) {
    refuse_words(e.what(), "");
    return kInputIsWrong;
  } catch (const WrongInput& e) {
    report(e.diagnostics);
    return kInputIsWrong;
  } catch (const worker::RefusedJob& e) {
    report(e.diagnostics);
    return kInputIsWrong;
  } catch (const ModelVersionError& e) {
    say(e);
    return kInputIsWrong;
  } catch (const TrainingError& e) {
    say(e);
    return kAnswerIsNo;
  } catch (const DataError& e) {
    say(e);
    return kInputIsWrong;
  } catch (const ForeignCheckpoint& e) {
    say(e);
    return kInputIsWrong;
  } catch (const NoUsableCheckpoint& e) {  // another start would train from the beginning
    say(e);
    return kAnswerIsNo;
  } catch (const SettingsDiffer& e) {
    say(e);
    return kInputIsWrong;
  } catch (const CommError& e) {
    say(e);
    return kExitLostPeer;
  } catch (const std::exception& e) {
    say(e);
    return kEnvironmentFailed;
  }
}
