-- What a turn began with may be in its log alone, and comes here when the turn lasts. Under its new name a process of an
-- older version, which may still be running, does not take a session from whoever has begun a turn of it that way.
ALTER TABLE session RENAME COLUMN prompt TO accepted;

-- What histories say is indexed later than it is stored. All segments up to this one are in the index.
INSERT INTO setting (name, value) SELECT 'indexed segment', coalesce(max(id), 0) FROM segment;
