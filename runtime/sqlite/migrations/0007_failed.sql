-- What an operator asks for first: the tasks that failed lately.
CREATE INDEX task_failed ON task (terminal, tool) WHERE outcome = 2 OR is_error;
