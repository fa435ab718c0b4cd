"""The controller: schedules reconciles, observes, decides, applies decisions and persists history."""
