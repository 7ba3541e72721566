#pragma once
#include <filesystem>
#include <optional>
#include <vector>

#include "sim/measurement/history.h"

// Where forecasts and runs are kept: $XDG_DATA_HOME/reckon/history.jsonl, else
// ~/.local/share/reckon/history.jsonl (XDG Base Directory Specification 0.8).
namespace reckon::cli {

/// Where reckon keeps what it has learned; nullopt: nowhere, because RECKON_HISTORY is "off" or
/// there is no home.
std::optional<std::filesystem::path> data_directory();
/// In it; nullopt: nothing is kept.
std::optional<std::filesystem::path> history_file();

/// Appends in one write, so that several programs may keep theirs at once. Where the file has
/// become larger than `most` bytes its older half is dropped. What cannot be kept is said on
/// standard error and no reason to fail.
inline constexpr std::uintmax_t kHistoryMost = 4u << 20;
void keep(const HistoryRecord& record, std::uintmax_t most = kHistoryMost);

/// Of the runs on machines that were probed, oldest first.
std::vector<OwnRun> runs_kept();

/// Now, in UTC: 2026-11-21T20:15:00Z.
std::string utc_now();

}  // namespace reckon::cli
