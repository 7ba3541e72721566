#pragma once
#include "sim/scenario/scenario_yaml_fields.h"

// Words of the grammar that more than one block uses.
namespace reckon {

inline constexpr std::array kProviderWords{
    Word<Provider>{"gcp", Provider::gcp}, Word<Provider>{"aws", Provider::aws},
    Word<Provider>{"azure", Provider::azure}, Word<Provider>{"selectel", Provider::selectel},
    Word<Provider>{"on_premises", Provider::on_premises}};
inline constexpr std::array kCapacityWords{Word<CapacityType>{"on_demand", CapacityType::on_demand},
                                           Word<CapacityType>{"spot", CapacityType::spot},
                                           Word<CapacityType>{"reserved", CapacityType::reserved}};
inline constexpr std::array kPrecisionWords{
    Word<Precision>{"fp32", Precision::fp32},   Word<Precision>{"tf32", Precision::tf32},
    Word<Precision>{"fp16", Precision::fp16},   Word<Precision>{"bf16", Precision::bf16},
    Word<Precision>{"fp8", Precision::fp8},     Word<Precision>{"mxfp8", Precision::mxfp8},
    Word<Precision>{"nvfp4", Precision::nvfp4}, Word<Precision>{"fp4", Precision::nvfp4}};
inline constexpr std::array kRecomputeWords{Word<Recompute>{"none", Recompute::none},
                                            Word<Recompute>{"selective", Recompute::selective},
                                            Word<Recompute>{"full", Recompute::full}};

}  // namespace reckon
