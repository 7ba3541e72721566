#pragma once
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "report/json_parts.h"

// What every sweep has in common, whatever is forecast at its points.
namespace reckon {

template <class Answer>
struct SweepPointOf {
  std::vector<std::string> values;  // by path
  std::optional<Answer> forecast;   // nullopt: the point cannot be, `reason` says why
  std::string reason;
};

template <class Answer>
struct SweepOf {
  std::string scenario;
  std::vector<std::string> paths;
  std::vector<SweepPointOf<Answer>> points;
};

struct SweepRow {
  std::vector<std::string> values;  // by path
  std::vector<std::string> cells;   // behind the values; none: the point cannot be
  std::string reason;
};

/// `cells(k)` of point k, where it has a forecast.
template <class Answer, class Cells>
std::vector<SweepRow> rows_of(const SweepOf<Answer>& sweep, Cells cells) {
  std::vector<SweepRow> rows;
  for (const auto& point : sweep.points)
    rows.push_back({point.values, point.forecast ? cells(rows.size()) : std::vector<std::string>(),
                    point.reason});
  return rows;
}

/// The paths by number, a row a point with `columns` behind its values, `remark` (a line with its
/// end, or empty), and why points cannot be.
std::string sweep_table(const std::string& scenario, std::span<const std::string> paths,
                        std::span<const char* const> columns, std::span<const SweepRow> rows,
                        const std::string& remark, int width);

/// RFC 4180: the values of each point, its cells or as many empty ones, its reason.
std::string sweep_csv(std::span<const std::string> paths, std::span<const char* const> columns,
                      std::span<const SweepRow> rows);

/// An array of the points: their values by path, `name`: object(forecast) or null, and the reason.
template <class Answer, class Object>
Json points_array(const SweepOf<Answer>& sweep, const char* name, Object object) {
  Json points = Json::array();
  for (const auto& point : sweep.points) {
    Json values = Json::object();
    for (std::size_t p = 0; p < sweep.paths.size(); ++p) values[sweep.paths[p]] = point.values[p];
    points.push_back({{"values", std::move(values)},
                      {name, point.forecast ? object(*point.forecast) : Json(nullptr)},
                      {"reason", text_or_null(point.reason)}});
  }
  return points;
}

}  // namespace reckon
