"""How large does the registry grow in a year, and how fast are its commonest reads then?"""
