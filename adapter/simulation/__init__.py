"""Input and output of simulations: recorded metrics from files and Prometheus, and the HTML report."""
