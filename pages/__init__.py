"""The workbench: one folder per step of the loop. Streamlit serves nothing that lies directly in this folder."""
