"""MLPerf Inference's load generator over engines of this project and of others."""
