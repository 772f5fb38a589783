-- Grants on prompts are of their own kind from now on, as in MLflow: what was granted on the
-- registered model of a prompt's name, or on all models, goes on to hold.
UPDATE OR REPLACE role_permissions SET resource_type = 'prompt'
WHERE resource_type = 'registered_model' AND resource_pattern IN (
    SELECT m.name FROM registered_models m JOIN registered_model_tags t USING (registered_row)
    WHERE t.key = 'mlflow.prompt.is_prompt' AND lower(t.value) = 'true');
INSERT OR IGNORE INTO role_permissions (role_id, resource_type, resource_pattern, permission)
SELECT role_id, 'prompt', '*', permission FROM role_permissions
WHERE resource_type = 'registered_model' AND resource_pattern = '*';
