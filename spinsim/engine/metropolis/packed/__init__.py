"""What the replica-packed and the site-packed update share: flip classes, random planes, the steps of an update."""
