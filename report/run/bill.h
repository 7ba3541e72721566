#pragma once
#include <string>

#include "exchange/bills/bill_ledger.h"

namespace reckon {

/// The ledger beside the bill, what the forecast has no line for, and the prices of the bill (of
/// `diff`: none).
std::string bill_table(const BillComparison& comparison, const BillCalibration& calibration);
std::string bill_json(const BillComparison& comparison, const BillCalibration& calibration);

}  // namespace reckon
