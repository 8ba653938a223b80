-- The images of a message that waits in the inbox, as JSON; emptied like `text`. Written by SqliteSessions.
ALTER TABLE turns ADD COLUMN images TEXT NOT NULL DEFAULT '[]';
CREATE INDEX turns_with_images ON turns (id) WHERE images <> '[]';

-- Which rows refer to which images. The bytes are files, kept while a row or a waiting message names them.
CREATE TABLE images (
    row_id INTEGER NOT NULL REFERENCES rows (id) ON DELETE CASCADE,
    sha256 TEXT NOT NULL,
    PRIMARY KEY (row_id, sha256)
) STRICT, WITHOUT ROWID;
CREATE INDEX images_by_digest ON images (sha256);
