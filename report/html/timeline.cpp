#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <set>

#include "report/html/charts.h"
#include "report/html/colors.h"
#include "sim/base/unit_text.h"

namespace reckon::html {
namespace {

constexpr std::size_t kMostRows = 130;
/// Of the whole picture: two thousand fit side by side on a wide screen.
constexpr double kThinnest = 1.0 / 2000;

/// What a colour stands for, in the order of the legend. `name` is the one of the recorded span or
/// of its category.
struct Meaning {
  std::string_view name;
  const char* text;
  const char* color;
};
constexpr std::array<Meaning, 8> kJobMeanings{{
    {"goodput", "training", kTrainingColor},
    {"provisioning", "job waits for nodes", "var(--warm)"},
    {"waiting", "job waits", "var(--mist)"},
    {"initialization", "job starts", "var(--leaf)"},
    {"data_loading", "waiting for input", "var(--sand)"},
    {"checkpoint_save", "saving a checkpoint", "var(--second)"},
    {"checkpoint_restore", "loading a checkpoint", "var(--plum)"},
    {"lost_work", "lost work", "var(--hot)"},
}};
constexpr std::array<Meaning, 7> kNodeMeanings{{
    {"provisioning", "node is provisioned", "var(--warm)"},
    {"job", "node runs the job", "var(--main)"},
    {"idle", "node idles", "var(--mist)"},
    {"leaving", "node leaves", "var(--slate)"},
    {"drained", "node is drained", "var(--slate)"},
    {"maintenance", "maintenance", "var(--plum)"},
    {"repair", "repair", "var(--hot)"},
}};
constexpr Meaning kOther{"", "other", "var(--slate)"};
constexpr Meaning kEvent{"", "node reclaimed or failed", "var(--hot)"};

const Meaning& meaning_of(const Span& s) {
  if (s.pool < 0) {
    for (const Meaning& m : kJobMeanings)
      if (m.name == s.category) return m;
  } else {
    for (const Meaning& m : kNodeMeanings)
      if (m.name == s.name) return m;
  }
  return kOther;
}

/// The job first (pool -1), then node by node.
using RowKey = std::pair<int, int>;

struct Block {
  RowKey row;
  const Meaning* meaning = nullptr;
  SimTime begin{}, end{};
};

/// Adds a span to the blocks of its row; it goes on with the last block of its meaning if only
/// something too thin to be seen lies between the two.
void append(std::vector<Block>& blocks, const Block& next, SimDuration thinnest) {
  const auto goes_on = [&](std::size_t back) {
    return blocks.size() >= back && blocks[blocks.size() - back].meaning == next.meaning &&
           next.begin - blocks[blocks.size() - back].end < thinnest;
  };
  if (!goes_on(1) && goes_on(2)) blocks.pop_back();
  if (goes_on(1))
    blocks.back().end = next.end;
  else
    blocks.push_back(next);
}

/// What is too thin to be seen is left out, so that a month of a hundred nodes is some thousand
/// rectangles.
std::vector<Block> blocks_of(const Timeline& timeline, SimDuration thinnest) {
  std::map<RowKey, std::vector<Span>> rows;
  for (const Span& s : timeline.spans) rows[{s.pool, s.node}].push_back(s);
  std::vector<Block> blocks;
  for (auto& [row, spans] : rows) {
    std::stable_sort(spans.begin(), spans.end(),
                     [](const Span& a, const Span& b) { return a.begin < b.begin; });
    std::vector<Block> of_row;
    for (const Span& s : spans) append(of_row, {row, &meaning_of(s), s.begin, s.end}, thinnest);
    std::copy_if(of_row.begin(), of_row.end(), std::back_inserter(blocks),
                 [&](const Block& b) { return b.end - b.begin >= thinnest; });
  }
  return blocks;
}

/// Notices come before what they announce, which is drawn.
bool is_loss(const Mark& m) { return m.name == "reclaimed" || m.name == "failed"; }

std::string row_name(const Plan& plan, RowKey row) {
  if (row.first < 0)
    return row.second < 0 ? std::string("job") : plan.jobs.at(std::size_t(row.second)).name;
  const std::string& pool = plan.pools.at(std::size_t(row.first)).name;
  return fmt::format("{}-{}", pool, row.second);
}

double hours(SimTime t, double unit) { return to_seconds(t - SimTime{}).count() / unit; }

struct Picture {
  const Plan& plan;
  TimeUnit unit;
  std::vector<RowKey> rows;
  std::vector<Block> blocks;
  std::vector<Mark> losses;

  bool shows(RowKey row) const { return std::binary_search(rows.begin(), rows.end(), row); }
};

Picture picture_of(const Plan& plan, const Timeline& timeline) {
  SimTime last{};
  std::set<RowKey> rows;
  for (const Span& s : timeline.spans) {
    last = std::max(last, s.end);
    rows.emplace(s.pool, s.node);
  }
  const SimDuration whole = last - SimTime{};
  Picture p{plan, time_unit(to_seconds(whole).count()), {rows.begin(), rows.end()}, {}, {}};
  if (p.rows.size() > kMostRows) p.rows.resize(kMostRows);
  for (Block& b : blocks_of(timeline, SimDuration{std::int64_t(double(whole.count()) * kThinnest)}))
    if (p.shows(b.row)) p.blocks.push_back(b);
  for (const Mark& m : timeline.marks)
    if (is_loss(m) && p.shows({m.pool, m.node})) p.losses.push_back(m);
  return p;
}

Json blocks_layer(const Picture& p) {
  Json values = Json::array();
  for (const Block& b : p.blocks)
    values.push_back({{"row", row_name(p.plan, b.row)},
                      {"what", b.meaning->text},
                      {"color", b.meaning->color},
                      {"from", hours(b.begin, p.unit.seconds)},
                      {"to", hours(b.end, p.unit.seconds)},
                      {"time", format_duration(to_seconds(b.end - b.begin))}});
  return {{"data", {{"values", values}}},
          {"mark", {{"type", "bar"}, {"height", {{"band", 0.86}}}}},
          {"encoding",
           {{"x",
             {{"field", "from"},
              {"type", "quantitative"},
              {"scale", {{"nice", false}, {"zero", true}}},
              {"axis", {{"title", long_name(p.unit) + " since the submit"}, {"tickCount", 6}}}}},
            {"x2", {{"field", "to"}}},
            {"color", {{"field", "color"}, {"type", "nominal"}, {"scale", nullptr}}},
            {"tooltip",
             {{{"field", "row"}, {"title", "row"}},
              {{"field", "what"}, {"title", "state"}},
              {{"field", "time"}, {"title", "for"}}}}}}};
}

Json losses_layer(const Picture& p, double row_height) {
  Json values = Json::array();
  for (const Mark& m : p.losses)
    values.push_back({{"row", row_name(p.plan, {m.pool, m.node})},
                      {"what", m.name},
                      {"at", hours(m.at, p.unit.seconds)},
                      {"time", format_duration(to_seconds(m.at - SimTime{}))}});
  return {{"data", {{"values", values}}},
          {"mark",
           {{"type", "tick"},
            {"orient", "vertical"},
            {"thickness", 2},
            {"size", row_height},
            {"color", kEvent.color}}},
          {"encoding",
           {{"x", {{"field", "at"}, {"type", "quantitative"}}},
            {"tooltip",
             {{{"field", "row"}, {"title", "row"}},
              {{"field", "what"}, {"title", "event"}},
              {{"field", "time"}, {"title", "after"}}}}}}};
}

std::vector<LegendEntry> legend_of(const Picture& p) {
  std::set<const Meaning*> seen;
  for (const Block& b : p.blocks) seen.insert(b.meaning);
  std::vector<LegendEntry> legend;
  const auto add = [&](const Meaning& m) {
    if (seen.contains(&m)) legend.push_back({m.color, m.text});
  };
  for (const Meaning& m : kJobMeanings) add(m);
  for (const Meaning& m : kNodeMeanings) add(m);
  add(kOther);
  if (!p.losses.empty()) legend.push_back({kEvent.color, kEvent.text});
  return legend;
}

/// How long each row was in which state.
Table states(const Picture& p) {
  std::map<RowKey, std::map<std::string, SimDuration>> times;
  for (const Block& b : p.blocks) times[b.row][b.meaning->text] += b.end - b.begin;
  Table table{{"row", "state", "time"}, {}};
  for (const auto& [row, by_state] : times)
    for (const auto& [state, time] : by_state)
      table.rows.push_back({row_name(p.plan, row), state, format_duration(to_seconds(time))});
  return table;
}

}  // namespace

Chart timeline_chart(const Plan& plan, const LifeResult& life, std::uint32_t replication) {
  const Picture p = picture_of(plan, life.timeline);
  std::size_t nodes = 0;
  for (const RowKey& row : p.rows) nodes += row.first >= 0 ? 1 : 0;
  const int height = p.rows.size() <= 12 ? 24 : p.rows.size() <= 40 ? 14 : 6;
  Json order = Json::array();
  for (const RowKey& row : p.rows) order.push_back(row_name(plan, row));
  Chart chart{"timeline", "One run from start to end", "", {}, legend_of(p), states(p)};
  chart.spec = chart_head(
      fmt::format("Timeline of replication {}: the job and {} nodes over {}; {} nodes are "
                  "reclaimed or fail",
                  replication, nodes, format_duration(to_seconds(life.finish - SimTime{})),
                  p.losses.size()),
      height * int(p.rows.size()));
  chart.spec["encoding"] = {{"y",
                             {{"field", "row"},
                              {"type", "nominal"},
                              {"scale", {{"domain", order}, {"padding", 0}}},
                              {"axis",
                               {{"title", nullptr},
                                {"labelLimit", 90},
                                {"labelOverlap", "greedy"},
                                {"labelSeparation", 8},
                                {"ticks", false},
                                {"domain", false}}}}}};
  chart.spec["layer"] = {blocks_layer(p)};
  if (!p.losses.empty()) chart.spec["layer"].push_back(losses_layer(p, height));
  chart.note = fmt::format(
      "Replication {}, the one whose time is nearest to the median{}. What is shorter than a "
      "two-thousandth of the picture is not drawn.",
      replication, life.finished ? "" : fmt::format(" (it does not finish: {})", life.failure));
  if (p.rows.size() == kMostRows)
    chart.note += fmt::format(" Rows beyond the first {} are left out.", kMostRows);
  return chart;
}

}  // namespace reckon::html
