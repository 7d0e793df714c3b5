"""What a learner is: its model as a row, how it is trained, the arithmetic on whole models."""
