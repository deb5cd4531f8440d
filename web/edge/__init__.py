"""The layers around the routes: connections, client addresses, origins, bodies and Gradio's queue."""
