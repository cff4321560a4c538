"""What requests ask for, one file a subject: values in, values out, no sockets."""
