"""Being here, it puts this folder on the path of the tests in the folders below: they share its support modules."""
