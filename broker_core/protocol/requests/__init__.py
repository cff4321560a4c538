"""The typed headers of requests and their answers, a file for each subject."""
