#pragma once

namespace reckon::cli {

/// Exit codes of every command; of several files the highest wins.
enum ExitCode { kDone = 0, kAnswerIsNo = 1, kInputIsWrong = 2, kEnvironmentFailed = 3 };

}  // namespace reckon::cli
