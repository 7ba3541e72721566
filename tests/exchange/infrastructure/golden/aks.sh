: "${RESOURCE_GROUP:?name of the resource group}"

az aks create \
    --resource-group "$RESOURCE_GROUP" \
    --name azure-nd-a100 \
    --location eastus \
    --node-count 1 --node-vm-size Standard_D2s_v5 \
    --network-plugin azure --network-plugin-mode overlay \
    --network-dataplane cilium \
    --generate-ssh-keys

az ppg create \
    --resource-group "$RESOURCE_GROUP" \
    --name azure-nd-a100-nd \
    --location eastus

az aks nodepool add \
    --resource-group "$RESOURCE_GROUP" \
    --cluster-name azure-nd-a100 \
    --name nd \
    --node-vm-size Standard_ND96amsr_A100_v4 \
    --node-count 0 \
    --enable-cluster-autoscaler \
    --min-count 0 \
    --max-count 8 \
    --node-taints sku=gpu:NoSchedule \
    --ppg azure-nd-a100-nd
