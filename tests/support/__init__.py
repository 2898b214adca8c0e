"""What the tests stand on: drivers of both protocols, twin apps, real servers, validation of documents."""
