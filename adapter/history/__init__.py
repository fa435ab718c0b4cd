"""The decision history: recorded decisions of all autoscalers, stored in ConfigMaps, readable from every replica."""
