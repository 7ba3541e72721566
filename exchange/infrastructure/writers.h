#pragma once
#include <nlohmann/json.hpp>
#include <string>

#include "exchange/infrastructure/infrastructure.h"
#include "exchange/refusals.h"

// Inside exchange/infrastructure: one writer a tool and service. What it refuses it adds to
// `refused`; the text is then not used.
namespace reckon::infrastructure {

using Json = nlohmann::ordered_json;

// terraform_*.cpp
InfrastructureText terraform_gke(const CloudCluster& cluster, Refusals& refused);
InfrastructureText terraform_eks(const CloudCluster& cluster, Refusals& refused);
InfrastructureText terraform_aks(const CloudCluster& cluster, Refusals& refused);
InfrastructureText eksctl(const CloudCluster& cluster, Refusals& refused);
InfrastructureText karpenter(const CloudCluster& cluster, Refusals& refused);
InfrastructureText aks(const CloudCluster& cluster, Refusals& refused);

// common.cpp
/// A text as Terraform's JSON has it, where "${" begins an expression.
std::string literal(const std::string& text);
/// The name of a resource in Terraform's language.
std::string resource_name(const PlannedPool& pool);
Json variable(const char* type, const std::string& description);
Json labels_of(const CloudPool& pool);
/// "1" of "eastus-1": the number of an Azure zone; "" where none is given.
std::string azure_zone(const Plan& plan);
/// AKS: 1 to 12 lower-case letters and digits, a letter first.
void refuse_azure_names(const CloudCluster& cluster, Refusals& refused);
/// Where checkpoints go, of a tool that creates no bucket.
void note_bucket(InfrastructureText& out, const CloudCluster& cluster, const char* command);

}  // namespace reckon::infrastructure
