#pragma once
#include <string>

#include "exchange/bills/bill_ledger.h"
#include "sim/measurement/run/diff.h"

namespace reckon {

std::string diff_table(const RunDiff& diff);
/// `bill`: what the cloud charged for the run, beside the forecast's ledger; nullptr: not at hand.
std::string diff_json(const RunDiff& diff, const BillComparison* bill = nullptr);

}  // namespace reckon
