#include <fmt/format.h>
#include <sqlite3.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>

#include "sim/measurement/profiles/nsys.h"

namespace reckon {
namespace {

/// What is wrong with the database.
struct WrongDatabase {
  std::string what, hint;
};

struct CloseDatabase {
  void operator()(sqlite3* db) const { sqlite3_close(db); }
};
struct FinishStatement {
  void operator()(sqlite3_stmt* s) const { sqlite3_finalize(s); }
};

/// A database that somebody sent may hold views, triggers and functions: only tables are read.
int only_read(void*, int action, const char*, const char*, const char*, const char* view) {
  const bool reads = action == SQLITE_SELECT || action == SQLITE_READ || action == SQLITE_FUNCTION;
  return reads && view == nullptr ? SQLITE_OK : SQLITE_DENY;
}

class Database {
 public:
  explicit Database(std::string_view bytes) {
    sqlite3* raw = nullptr;
    if (sqlite3_open_v2(":memory:", &raw, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, nullptr) !=
        SQLITE_OK)
      throw WrongDatabase{"no memory to read it", ""};
    db_.reset(raw);
    sqlite3_db_config(raw, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
    sqlite3_db_config(raw, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
    sqlite3_db_config(raw, SQLITE_DBCONFIG_DQS_DML, 0, nullptr);  // "end" is a column, or an error
    sqlite3_limit(raw, SQLITE_LIMIT_LENGTH, 1 << 24);
    // Without FREEONCLOSE the bytes stay the caller's; they are not written to.
    auto* data = reinterpret_cast<unsigned char*>(const_cast<char*>(bytes.data()));
    if (sqlite3_deserialize(raw, "main", data, sqlite3_int64(bytes.size()),
                            sqlite3_int64(bytes.size()), SQLITE_DESERIALIZE_READONLY) != SQLITE_OK)
      throw WrongDatabase{"no database of SQLite", ""};
    sqlite3_set_authorizer(raw, only_read, nullptr);
    sqlite3_progress_handler(raw, kAtATime, out_of_time, &left_);
  }

  /// A row at a time; `each` gets the statement and the row's number.
  template <class F>
  void rows(const std::string& sql, F each) {
    sqlite3_stmt* raw = nullptr;
    if (sqlite3_prepare_v2(db_.get(), sql.c_str(), -1, &raw, nullptr) != SQLITE_OK)
      throw WrongDatabase{sqlite3_errmsg(db_.get()), kHint};
    const std::unique_ptr<sqlite3_stmt, FinishStatement> statement(raw);
    std::int64_t row = 0;
    int state = SQLITE_OK;
    while ((state = sqlite3_step(raw)) == SQLITE_ROW) each(raw, ++row);
    if (state != SQLITE_DONE)
      throw WrongDatabase{
          state == SQLITE_INTERRUPT ? "it takes too long to read" : sqlite3_errmsg(db_.get()),
          kHint};
  }

  bool has(std::string_view table) {
    bool found = false;
    rows(fmt::format("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = '{}'", table),
         [&](sqlite3_stmt*, std::int64_t) { found = true; });
    return found;
  }

 private:
  static constexpr const char* kHint = "export it again: nsys export --type sqlite REPORT.nsys-rep";
  static constexpr int kAtATime = 100'000;
  static int out_of_time(void* left) { return --*static_cast<int*>(left) < 0 ? 1 : 0; }

  int left_ = 100'000;  // so many times kAtATime instructions: a minute or so
  std::unique_ptr<sqlite3, CloseDatabase> db_;
};

std::string_view text_of(sqlite3_stmt* s, int column) {
  const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(s, column));
  return text == nullptr ? ""
                         : std::string_view(text, std::size_t(sqlite3_column_bytes(s, column)));
}

struct Stretch {
  std::int64_t begin = 0, end = 0;
};
Stretch stretch_of(sqlite3_stmt* s, const char* table, std::int64_t row) {
  constexpr std::int64_t kLatest = std::int64_t{1} << 61U;  // differences do not wrap
  const Stretch x{sqlite3_column_int64(s, 0), sqlite3_column_int64(s, 1)};
  if (x.begin < 0 || x.end < x.begin || x.end > kLatest)
    throw WrongDatabase{fmt::format("{}, row {}: it ends at {}, before its start at {}", table, row,
                                    x.end, x.begin),
                        ""};
  return x;
}

struct Kernels {
  std::vector<ProfiledKernel> all;
  std::map<std::string, std::vector<std::int64_t>, std::less<>> begins;  // of the first device's
};

Kernels kernels_of(Database& db) {
  constexpr const char* kTable = "CUPTI_ACTIVITY_KIND_KERNEL";
  if (!db.has(kTable))
    throw WrongDatabase{fmt::format("no table {}: no kernel was traced", kTable),
                        "profile with nsys profile --trace=cuda,nvtx"};
  if (!db.has("StringIds")) throw WrongDatabase{"no table StringIds: kernels have no names", ""};
  std::map<std::int64_t, std::pair<std::string, KernelKind>> named;  // by the name's number
  db.rows(
      "SELECT id, value FROM StringIds WHERE id IN (SELECT demangledName FROM "
      "CUPTI_ACTIVITY_KIND_KERNEL)",
      [&](sqlite3_stmt* s, std::int64_t) {
        named[sqlite3_column_int64(s, 0)] = {std::string(text_of(s, 1)),
                                             kernel_kind(text_of(s, 1))};
      });
  Kernels kernels;
  const auto add = [&](sqlite3_stmt* s, const char* table, std::int64_t row, KernelKind kind) {
    const Stretch x = stretch_of(s, table, row);
    kernels.all.push_back({x.begin, x.end, sqlite3_column_int(s, 2), kind});
  };
  db.rows(fmt::format("SELECT start, \"end\", deviceId, demangledName FROM {}", kTable),
          [&](sqlite3_stmt* s, std::int64_t row) {
            const auto name = named.find(sqlite3_column_int64(s, 3));
            if (name == named.end())
              throw WrongDatabase{fmt::format("{}, row {}: its name {} is not in StringIds", kTable,
                                              row, sqlite3_column_int64(s, 3)),
                                  ""};
            add(s, kTable, row, name->second.second);
            if (kernels.all.back().device == kernels.all.front().device)
              kernels.begins[name->second.first].push_back(kernels.all.back().begin);
          });
  for (const char* table : {"CUPTI_ACTIVITY_KIND_MEMCPY", "CUPTI_ACTIVITY_KIND_MEMSET"})
    if (db.has(table))
      db.rows(fmt::format("SELECT start, \"end\", deviceId FROM {}", table),
              [&](sqlite3_stmt* s, std::int64_t row) { add(s, table, row, KernelKind::memory); });
  return kernels;
}

/// "ProfilerStep#12" is "profilerstep#".
std::string without_digits(std::string_view text) {
  constexpr std::size_t kMost = 200;
  std::string out;
  for (const char c : text.substr(0, kMost))
    if (c < '0' || c > '9') out += c >= 'A' && c <= 'Z' ? char(c - 'A' + 'a') : c;
  return out;
}
bool says_step(std::string_view text) {
  return text.find("step") != text.npos || text.find("iter") != text.npos;
}

/// Empty: none says so.
std::vector<ProfiledWindow> ranges_of_steps(Database& db) {
  constexpr const char* kTable = "NVTX_EVENTS";
  if (!db.has(kTable)) return {};
  using Ranges = std::vector<ProfiledWindow>;
  std::map<std::pair<std::string, std::int64_t>, Ranges> ranges;  // by text and thread
  // 59: pushed and popped, 60: started and ended.
  db.rows(
      "SELECT n.start, n.\"end\", n.globalTid, coalesce(n.text, s.value) FROM NVTX_EVENTS n "
      "LEFT JOIN StringIds s ON s.id = n.textId WHERE n.eventType IN (59, 60) AND n.\"end\" IS "
      "NOT NULL",
      [&](sqlite3_stmt* s, std::int64_t row) {
        const std::string text = without_digits(text_of(s, 3));
        if (!says_step(text)) return;
        const Stretch x = stretch_of(s, kTable, row);
        ranges[{text, sqlite3_column_int64(s, 2)}].push_back({x.begin, x.end});
      });
  std::vector<ProfiledWindow> best;
  for (auto& [key, all] : ranges)
    if (auto windows = joined_windows(std::move(all)); windows.size() > best.size())
      best = std::move(windows);
  return best;
}

std::vector<ProfiledWindow> steps_of(Database& db, const Kernels& kernels, std::int64_t steps) {
  auto windows = ranges_of_steps(db);
  if (windows.empty() && steps > 1) {
    windows = windows_between_launches(kernels.begins, steps);
    if (windows.empty())
      throw WrongDatabase{fmt::format("no kernel was launched {} times, once a step", steps),
                          "--steps: how many steps the trace holds"};
  }
  if (windows.empty())
    throw WrongDatabase{
        "no NVTX range whose text says step or iteration: how long a step took is not known",
        "mark steps in the program, such as torch.cuda.nvtx.range_push(f\"step {n}\"), and profile "
        "with --trace=cuda,nvtx; or say how many steps the trace holds: --steps N"};
  return windows;
}

}  // namespace

bool is_sqlite(std::string_view bytes) {
  return bytes.starts_with(std::string_view("SQLite format 3\0", 16));
}

Expected<Profile> parse_nsys_sqlite(std::string_view file, std::string_view bytes,
                                    std::int64_t steps) {
  try {
    Database db(bytes);
    Kernels kernels = kernels_of(db);
    const std::vector<ProfiledWindow> windows = steps_of(db, kernels, steps);
    Profile profile;
    profile.tool = "Nsight Systems";
    if (db.has("TARGET_INFO_GPU"))
      db.rows("SELECT name FROM TARGET_INFO_GPU LIMIT 1",
              [&](sqlite3_stmt* s, std::int64_t) { profile.device = text_of(s, 0); });
    set_steps(profile, std::move(kernels.all), windows);
    return profile;
  } catch (const WrongDatabase& wrong) {
    return tl::unexpected(
        Diagnostics{{Severity::error, {std::string(file), 0, 0}, wrong.what, wrong.hint}});
  }
}

}  // namespace reckon
