#include <catch2/catch.hpp>

#include "cli/run_reckon.h"

using namespace reckon::test;
using Catch::Matchers::Contains;

TEST_CASE("export writes node pools for a tool, and says what the tool does not create") {
  const Workspace w;
  const std::string plan = RECKON_SOURCE_DIR "/scenarios/aws-p4d-spot.yaml";
  const Output terraform = w.run("export terraform " + plan + " --out main.tf.json");
  CHECK(terraform.code == 0);
  CHECK_THAT(read_all(w.path("main.tf.json")),
             Contains("\"aws_eks_node_group\"") && Contains("\"capacity_type\": \"SPOT\""));
  CHECK_THAT(terraform.err, Contains("reckon: left to you: EFA interfaces of p4d.24xlarge"));
  const Output karpenter = w.run("export karpenter " + plan);
  CHECK(karpenter.code == 0);
  CHECK_THAT(karpenter.out, Contains("kind: NodePool\n") && Contains("- spot\n"));
  CHECK_THAT(karpenter.err, Contains("aws ec2 create-placement-group"));
}

TEST_CASE("export refuses node pools of another cloud at the scenario's service") {
  const Workspace w;
  const Output r = w.run("export aks " RECKON_SOURCE_DIR "/scenarios/aws-p4d-spot.yaml");
  CHECK(r.code == 2);
  CHECK(r.out.empty());
  CHECK_THAT(r.err, Contains("aws-p4d-spot.yaml:19:") &&
                        Contains("export aks has no counterpart of EKS") && Contains("of aks"));
}
