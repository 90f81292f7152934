# Checks that pint applies to each rule, besides its built-in checks. npm run lint:rules adds a
# Prometheus with real series.
checks {
  # pint objects to regular expressions such as job=~".*memwatch.*". The rules need one, because
  # operators choose the names of their scrape jobs.
  disabled = ["promql/regexp"]
}

# The Prometheus of npm run lint:rules has just started, so its series are only seconds old.
check "promql/series" {
  lookbackRange = "2m"
  lookbackStep  = "1s"
  # This metric exists only if the exporter itself has a memory limit.
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
  # The alert of a diagnosis has the severity of its verdict.
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
