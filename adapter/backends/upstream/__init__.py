"""Another server of the external metrics API: KEDA's, Datadog's, an older one, or a second one of ours."""
