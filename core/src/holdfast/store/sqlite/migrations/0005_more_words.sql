-- A search finds thoughts and what tools gave too, so all histories are indexed anew: by the next search, or with the
-- next title. Titles keep their places.
DELETE FROM doc WHERE segment IS NOT NULL;
INSERT INTO words (words) VALUES ('delete-all');
INSERT INTO words (rowid, text) SELECT title_doc, title FROM session
WHERE title IS NOT NULL AND EXISTS (SELECT 1 FROM doc WHERE doc.id = session.title_doc);
UPDATE setting SET value = 0 WHERE name = 'indexed segment';
