#pragma once
#include <span>
#include <string>

#include "report/check/check.h"
#include "sim/forecast/forecast.h"

// What a program reads. Field names are part of the interface and never change; unknown is null.
namespace reckon {

/// `reckon simulate --format json`: one object, indented by two, with its newline.
/// `serving`: of the same scenario, as its "serving".
std::string forecast_json(const Forecast& forecast, const ServingForecast* serving = nullptr);

/// `reckon check --format json`.
std::string check_json(std::span<const CheckedScenario> scenarios);

/// One replication for chrome://tracing and ui.perfetto.dev (Trace Event Format, JSON object form):
/// a process for the job and one for each pool, a thread for each node; times in microseconds since
/// the first submit.
std::string trace_json(const Plan& plan, const LifeResult& life);

}  // namespace reckon
