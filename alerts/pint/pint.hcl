# What pint asks of every rule, beside its own checks; npm run lint:rules adds a Prometheus that holds real series.
checks {
  # Which jobs are exporters is the operator's to say: the default takes any that has memwatch in its name.
  disabled = ["promql/regexp"]
}

# What it is asked about has only just begun.
check "promql/series" {
  lookbackRange = "2m"
  lookbackStep  = "1s"
  # Only where the exporter itself has a memory limit.
  ignoreMetrics = ["memwatch_exporter_memory_limit_bytes"]
}

rule {
  match {
    kind = "alerting"
  }
  annotation "summary" {
    severity = "bug"
    required = true
  }
  annotation "description" {
    severity = "bug"
    required = true
  }
  annotation "fix" {
    severity = "bug"
    required = true
  }
  annotation "runbook_url" {
    severity = "bug"
    required = true
    value    = "https://.+"
  }
  # That of the verdict, where a diagnosis makes the alert.
  label "severity" {
    severity = "bug"
    required = true
    value    = "(info|warning|critical|[{][{] if [$]labels.severity .+)"
  }
  for {
    severity = "bug"
    min      = "1m"
  }
  keep_firing_for {
    severity = "bug"
    min      = "1m"
  }
}
